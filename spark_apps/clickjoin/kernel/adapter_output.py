"""What an ArrowAdapter makes of joined rows, checked against what it got; and the one that `output` stands for.

Runs on executors without clickjoin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.adapter import MISFITS, ArrowAdapter
from clickjoin.kernel.arrays import equi_join, int64_array, number_array, text_array, to_numpy
from clickjoin.kernel.typed_columns.columns import typed
from clickjoin.kernel.types import arrow_type, delta_type
from clickjoin.model.places import RECORD, RECORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickjoin.model.field_path import TypedColumn

_TIME = pa.timestamp("us", "UTC")
GIVEN = pa.schema([
    ("event_id", pa.string()), ("event_time", _TIME), ("primary_id", pa.string()), ("primary_time", _TIME),
    ("payload", pa.string()), ("primary", pa.string()),
])  # fmt: skip


class AdapterFault(Exception):
    """An adapter has given what it may not give."""


def made_of(columns: Mapping[str, str], *, misfits: bool = False) -> pa.Schema:
    """What an adapter with these columns (name to Spark SQL type) has to give; `misfits`: column MISFITS too."""
    own = [(name, arrow_type(delta_type(kind))) for name, kind in columns.items()]
    more = [(MISFITS, pa.list_(pa.string()))] if misfits else []
    return pa.schema([GIVEN.field("event_id"), GIVEN.field("event_time"), *own, *more])


def misfits_of(made: pa.Table) -> dict[str, int]:
    """How many values did not fit, by column. Columns in: MISFITS, or without it none is counted."""
    if MISFITS not in made.column_names or made[MISFITS].null_count == made.num_rows:
        return {}
    return {row["values"]: row["counts"] for row in pc.value_counts(pc.list_flatten(made[MISFITS])).to_pylist()}


def merged(adapter: ArrowAdapter, given: pa.Table, made: pa.Schema) -> tuple[np.ndarray[Any, Any], pa.Table]:
    """What an adapter makes of some rows, and which row each of its rows was made of.

    Columns in: those of GIVEN; out: those of `made`. Errors: AdapterFault where it raises, or gives two rows of one
    event, an event that was not there, or other columns.
    """
    try:
        rows = adapter.merge_table(given)
        missing = [name for name in made.names if name not in rows.column_names]
        rows = rows if missing else rows.select(made.names).cast(made)
    except Exception as error:
        raise AdapterFault(f"raised {type(error).__name__}: {str(error)[:500]}") from error
    if missing:
        raise AdapterFault(f"dropped {', '.join(missing)}")
    same = rows.num_rows == given.num_rows and all(rows[name].equals(given[name]) for name in made.names[:2])
    return (np.arange(rows.num_rows) if same else _origins(rows, given)), rows


def _origins(rows: pa.Table, given: pa.Table) -> np.ndarray[Any, Any]:
    if rows["event_id"].null_count or rows["event_time"].null_count:
        raise AdapterFault("gave an event without id or time")
    one, other = equi_join(rows["event_id"], given["event_id"])
    mine, theirs = (to_numpy(table["event_time"].cast(pa.int64())) for table in (rows, given))
    fits = mine[one] == theirs[other]
    one, other = one[fits], other[fits]
    _refuse(rows, np.bincount(one, minlength=rows.num_rows) == 0, "gave an event that was not there:")
    _refuse(given, np.bincount(other, minlength=given.num_rows) > 1, "made two rows of one event, such as")
    origins: np.ndarray[Any, Any] = other[np.argsort(one)]
    return origins


def _refuse(rows: pa.Table, wrong: np.ndarray[Any, Any], text: str) -> None:
    if wrong.any():
        raise AdapterFault(f"{text} {rows['event_id'][int(np.argmax(wrong))].as_py()}")


_TEXTS = {"foreign": "payload", "primary": "primary"}
_WHOLE = {RECORDS[stream]: text for stream, text in _TEXTS.items()} | {RECORD: "payload"}


class TypedOutput(ArrowAdapter):
    """Columns of both records by path and type, nothing left out. A value that does not fit its type is null."""

    reports_misfits: ClassVar[bool] = True

    def __init__(self, columns: Sequence[TypedColumn], records: Sequence[str] = ()) -> None:
        """`records`: columns of records that are kept whole, as JSON text (foreign_record, primary_record; record)."""
        self._typed, self._records = tuple(columns), tuple(records)

    @property
    def columns(self) -> Mapping[str, str]:  # type: ignore[override]  # by instance: it is made of a configuration
        """The columns that it adds to the output, name to Spark SQL type."""
        return dict.fromkeys(self._records, "STRING") | {column.name: column.type for column in self._typed}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, records, typed columns, and the names of those that did not fit."""
        made: dict[str, Any] = {name: joined[name] for name in ("event_id", "event_time")}
        made |= {name: joined[_WHOLE[name]] for name in self._records}
        misfits: dict[str, Any] = {}
        for stream, text in _TEXTS.items():
            columns = [column for column in self._typed if column.stream == stream]
            if columns:
                found = typed(joined[text], columns)
                made |= found.values
                misfits |= found.misfits
        return pa.table(made | {MISFITS: named(misfits, joined.num_rows)})


def named(misfits: Mapping[str, Any], count: int) -> Any:
    """For each of some rows the names of columns whose value did not fit; null where all rows fit. `misfits`: masks."""
    names = [name for name, wrong in misfits.items() if wrong.any()]
    if not names:
        return pa.nulls(count, pa.list_(pa.string()))
    wrong = np.stack([misfits[name] for name in names], axis=1)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(wrong.sum(axis=1))])
    values = text_array(names, pa.string()).take(int64_array(np.nonzero(wrong)[1]))
    return pa.ListArray.from_arrays(number_array(ends, pa.int32()), values)
