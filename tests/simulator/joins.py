"""Joins: by hash where columns are held equal, pair by pair for the rest of the condition."""

from __future__ import annotations

from typing import Any

from tests.simulator.columns import Column
from tests.simulator.frames import DataFrame, Rows


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


def join(left: DataFrame, right: DataFrame, on: Any, how: str) -> DataFrame:
    """Inner, left, left_semi, left_anti and full joins."""
    how = {"leftanti": "left_anti", "leftsemi": "left_semi", "left_outer": "left", "full": "outer"}.get(how, how)
    if isinstance(on, str):
        on = [on]
    if isinstance(on, list) and on and isinstance(on[0], Column):
        whole = on[0]
        for part in on[1:]:
            whole = whole & part
        on = whole
    shared = list(on) if isinstance(on, list) else []
    if isinstance(on, Column):
        pairs, rest = split(on, set(left.columns), set(right.columns))
    else:
        pairs, rest = [(name, name) for name in shared], []
    more = [name for name in right.columns if name not in shared]
    doubled = [name for name in more if name in left.columns]
    if doubled and how not in ("left_anti", "left_semi"):
        raise ValueError(f"ambiguous after a join: {doubled}")
    columns = (
        left.columns
        if how in ("left_anti", "left_semi")
        else [*shared, *(c for c in left.columns if c not in shared), *more]
    )
    nothing = dict.fromkeys(more)

    def rows() -> Rows:
        mine, found = left.rows(), index(right.rows(), [b for _, b in pairs])
        out: Rows = []
        used: set[int] = set()
        for row in mine:
            key = tuple([row[a] for a, _ in pairs])
            hits = [other for other in found.get(key, ()) if all(p.fn(row | other) is True for p in rest)]  # type: ignore[misc]
            if how in ("left_anti", "left_semi"):
                out += [row] if bool(hits) == (how == "left_semi") else []
                continue
            used.update(map(id, hits))
            out += [other | row for other in hits] or ([row | nothing] if how in ("left", "outer") else [])
        if how == "outer":
            blank = dict.fromkeys(left.columns)
            out += [blank | other for held in found.values() for other in held if id(other) not in used]
        return out

    return left._make(columns, rows)
