"""Groups of rows: aggregates, and window functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tests.simulator.columns import Column
from tests.simulator.values import order_key

if TYPE_CHECKING:
    from tests.simulator.frames import DataFrame

Rows = list[dict[str, Any]]


class Grouped:
    """Groups of rows, to be aggregated."""

    def __init__(self, frame: DataFrame, keys: Sequence[Column]) -> None:
        self._frame = frame
        self._keys = keys

    def count(self) -> DataFrame:
        """How many rows in each."""
        return self.agg(Column(None, "count", fold=len))

    def agg(self, *columns: Column) -> DataFrame:
        """A row for each group; without keys one row, also of no rows."""
        keys, folds = self._keys, [(column.name, column.over_rows()) for column in columns]

        def rows() -> Rows:
            if not keys:
                whole = self._frame.rows()
                return [{name: fold(whole) for name, fold in folds}]
            groups: dict[tuple[Any, ...], Rows] = {}
            for row in self._frame.rows():
                groups.setdefault(tuple(key.fn(row) for key in keys), []).append(row)  # type: ignore[misc]
            return [
                dict(zip((key.name for key in keys), values, strict=True)) | {name: fold(held) for name, fold in folds}
                for values, held in groups.items()
            ]

        made = self._frame._make([c.name for c in (*keys, *columns)], rows)
        made.structs = {c.name: c.refs for c in columns if c.refs}  # type: ignore[attr-defined]
        return made


def windowed(rows: Rows, made: dict[str, Column]) -> Rows:
    """Rows with window functions computed: row_number, and aggregates over whole partitions."""
    done = [dict(row) for row in rows]
    for name, column in made.items():
        if column.window is None:
            for old, new in zip(rows, done, strict=True):
                new[name] = column.fn(old)  # type: ignore[misc]
            continue
        spec, of, after = column.window
        groups: dict[tuple[Any, ...], list[int]] = {}
        for at, row in enumerate(rows):
            groups.setdefault(tuple(key.fn(row) for key in spec.keys), []).append(at)
        for held in groups.values():
            held.sort(key=lambda at: [order_key(item.fn(rows[at])) for item in spec.order])
            for nth, at in enumerate(held, 1):
                framed = held if spec.until is None else held[: max(nth + spec.until, 0)]
                value = nth if of.fold is None else of.fold([rows[i] for i in framed])
                done[at][name] = after(value, rows[at]) if after else value
    return done
