"""JSON objects as Arrow reads them: one nested schema for some paths, and the values at each. Runs on executors.

What Arrow accepts is accepted where as many rows come out as texts went in, each of which begins with `{` and ends
with `}`, so that none can be two objects and no two one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from clickjoin.kernel.arrays import int64_array, to_numpy

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.model.field_path import FieldPath

# A path without the numbers of elements: those of one array are read with one type.
Shape = tuple[str | None, ...]
EXACT = 2**53  # integers below are exact as floats


def shape_of(path: FieldPath) -> Shape:
    """A path's shape."""
    return tuple(step if isinstance(step, str) else None for step in path)


def arrow_name(shape: Shape) -> str:
    """What Arrow calls values in its errors."""
    return "/".join("[]" if step is None else step for step in shape)


def can_read(shapes: Iterable[Shape]) -> bool:
    """Whether one schema can hold them all: none leads through another's value, or takes an object for an array."""
    seen = set(shapes)
    steps: dict[Shape, set[bool]] = {}
    for shape in seen:
        for length in range(1, len(shape)):
            steps.setdefault(shape[:length], set()).add(shape[length] is None)
    return not seen & steps.keys() and all(len(kinds) == 1 for kinds in steps.values())


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
    """The values at a path of a table that was so read, null where there is none."""
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


def braced(texts: Any) -> npt.NDArray[np.bool_]:
    """Which texts begin with `{` and end with `}`."""
    return to_numpy(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}")))


def bytes_of(texts: Any) -> Any:
    """The bytes of some texts, as they lie one after another."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return texts.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def read_json(data: Any, types: Mapping[Shape, pa.DataType]) -> pa.Table:
    """JSON objects in a row (a buffer), with values of these types. Errors: ArrowInvalid, UnicodeDecodeError."""
    schema = pa.schema(list(_type(types)))
    return pyarrow.json.read_json(
        pa.BufferReader(data),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
