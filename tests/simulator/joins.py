"""Joins: by hash where columns are held equal, pair by pair for the rest of the condition."""

from __future__ import annotations

from typing import Any

from tests.simulator.columns import Column
from tests.simulator.frames import DataFrame, Rows

Row = dict[str, Any]


def split(on: Column, left: set[str], right: set[str]) -> tuple[list[tuple[str, str]], list[Column]]:
    """The pairs of columns (left, right) that a condition holds equal, and its other terms."""
    pairs, rest = [], []
    for part in on.parts:
        if part.equal and part.equal[0] in left and part.equal[1] in right:
            pairs.append(part.equal)
        elif part.equal and part.equal[1] in left and part.equal[0] in right:
            pairs.append((part.equal[1], part.equal[0]))
        else:
            rest.append(part)
    return pairs, rest


def index(rows: Rows, names: list[str]) -> dict[tuple[Any, ...], Rows]:
    """Rows by key; a key with a null matches nothing."""
    found: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        key = tuple([row[name] for name in names])
        if None not in key:
            found.setdefault(key, []).append(row)
    return found


_HOW = {"leftanti": "left_anti", "leftsemi": "left_semi", "left_outer": "left", "full": "outer"}
_HALF = ("left_anti", "left_semi")


def join(left: DataFrame, right: DataFrame, on: Any, how: str) -> DataFrame:
    """Inner, left, left_semi, left_anti and full joins."""
    how = _HOW.get(how, how)
    shared = [on] if isinstance(on, str) else list(on) if isinstance(on, list) else []
    pairs: list[tuple[str, str]] = [(name, name) for name in shared]
    rest: list[Column] = []
    if isinstance(on, Column):
        pairs, rest = split(on, set(left.columns), set(right.columns))
    more = [name for name in right.columns if name not in shared]
    columns = left.columns
    if how not in _HALF:
        doubled = [name for name in more if name in left.columns]
        if doubled:
            raise ValueError(f"ambiguous after a join: {doubled}")
        columns = [*shared, *(name for name in left.columns if name not in shared), *more]

    def rows() -> Rows:
        found = index(right.rows(), [b for _, b in pairs])
        matched = [(row, _hits(row, found, pairs, rest)) for row in left.rows()]
        if how in _HALF:
            return [row for row, hits in matched if bool(hits) == (how == "left_semi")]
        return _side_by_side(matched, dict.fromkeys(more), how) + _left_over(matched, found, left.columns, how)

    return left._make(columns, rows)


def _hits(row: Row, found: dict[tuple[Any, ...], Rows], pairs: list[tuple[str, str]], rest: list[Column]) -> Rows:
    same = found.get(tuple([row[name] for name, _ in pairs]), ())
    return [other for other in same if all(part.fn(row | other) is True for part in rest)]  # type: ignore[misc]


def _side_by_side(matched: list[tuple[Row, Rows]], nothing: Row, how: str) -> Rows:
    out: Rows = []
    for row, hits in matched:
        out += [other | row for other in hits] or ([row | nothing] if how in ("left", "outer") else [])
    return out


def _left_over(matched: list[tuple[Row, Rows]], found: dict[Any, Rows], columns: list[str], how: str) -> Rows:
    """Of a full join: rows of the right that matched nothing."""
    if how != "outer":
        return []
    used = {id(other) for _, hits in matched for other in hits}
    blank = dict.fromkeys(columns)
    return [blank | other for held in found.values() for other in held if id(other) not in used]
