"""Values inside JSON objects by their paths: Arrow's schema for them, and the values of a column. Runs on executors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import to_numpy

if TYPE_CHECKING:
    from clickjoin.model.field_path import FieldPath

Tree = dict[str | int, Any]


def arrow_name(path: FieldPath) -> str:
    """What Arrow calls a value in its errors."""
    return "/".join("[]" if isinstance(step, int) else step for step in path)


def schema_of(kinds: Mapping[FieldPath, Any]) -> pa.Schema | None:
    """The schema in which Arrow finds values of these types by their paths; None where no record can hold them all."""
    tree: Tree = {}
    for path, kind in kinds.items():
        at = tree
        for step in path[:-1]:
            at = at.setdefault("[]" if isinstance(step, int) else step, {})
            if not isinstance(at, dict):
                return None
        last = "[]" if isinstance(path[-1], int) else path[-1]
        if at.get(last, kind) != kind:
            return None
        at[last] = kind
    fields = {name: _type_of(below) for name, below in tree.items()}
    return None if None in fields.values() else pa.schema(list(fields.items()))


def _type_of(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    below = {name: _type_of(part) for name, part in tree.items()}
    if None in below.values() or ("[]" in below and len(below) > 1):
        return None
    return pa.list_(below["[]"]) if "[]" in below else pa.struct(list(below.items()))


def values_at(table: pa.Table, path: FieldPath) -> Any:
    """The values at a path, null where there is none. Errors: KeyError for a first key that is no column."""
    found = table.column(path[0]).combine_chunks()
    for step in path[1:]:
        found = _elements(found, step) if isinstance(step, int) else pc.struct_field(found, step)
    return found


def _elements(lists: Any, at: int) -> Any:
    """Element `at` of each list; null where the list is shorter or null."""
    starts = np.frombuffer(lists.buffers()[1], np.int32)[lists.offset : lists.offset + len(lists) + 1].astype(np.int64)
    there = (np.diff(starts) > at) & to_numpy(pc.is_valid(lists))
    places = pa.array(np.where(there, starts[:-1] + at, 0), mask=~there)
    return lists.values.take(places)
