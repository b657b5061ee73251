"""What Arrow is asked to read for some paths: one nested schema, and the way to each value in it. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import int64_array

if TYPE_CHECKING:
    from clickjoin.model.field_path import FieldPath

# A path without the numbers of elements: those of one array are read with one type.
Shape = tuple[str | None, ...]


def shape_of(path: FieldPath) -> Shape:
    """A path's shape."""
    return tuple(step if isinstance(step, str) else None for step in path)


def can_read(shapes: Iterable[Shape]) -> bool:
    """Whether one schema can hold them all: none leads through another's value, or takes an object for an array."""
    seen = set(shapes)
    inner = {shape[:length] for shape in seen for length in range(1, len(shape))}
    steps: dict[Shape, set[bool]] = {}
    for shape in seen:
        for length in range(1, len(shape)):
            steps.setdefault(shape[:length], set()).add(shape[length] is None)
    return not seen & inner and all(len(kinds) == 1 for kinds in steps.values())


def schema_of(types: Mapping[Shape, pa.DataType]) -> pa.Schema:
    """The schema of records that have values of these types there."""
    return pa.schema(list(_type(types)))


def _type(types: Mapping[Shape, pa.DataType]) -> Any:
    """The type of whatever holds these: a struct, a list, or the value's own."""
    if () in types:
        return types[()]
    below: dict[str | None, dict[Shape, pa.DataType]] = {}
    for shape, kind in types.items():
        below.setdefault(shape[0], {})[shape[1:]] = kind
    if None in below:
        return pa.list_(_type(below[None]))
    return pa.struct([(name, _type(inner)) for name, inner in below.items()])


def values_at(table: pa.Table, path: FieldPath) -> Any:
    """The values at a path of a table of that schema, null where there is none."""
    first, *steps = path
    values = table.column(table.schema.get_field_index(first)).combine_chunks()
    for step in steps:
        if isinstance(step, str):
            values = pc.struct_field(values, values.type.get_field_index(step))
        else:
            values = _element(values, step)
    return values


def _element(lists: Any, number: int) -> Any:
    """An element of each list, null where it has fewer."""
    long = pc.fill_null(pc.greater(pc.list_value_length(lists), int64_array([number])[0]), False)
    begins = lists.offsets.slice(0, len(lists)).cast(pa.int64())
    at = pc.if_else(long, pc.add(begins, int64_array([number])[0]), pa.nulls(1, pa.int64())[0])
    return lists.values.take(at)
