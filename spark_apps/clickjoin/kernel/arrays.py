"""Between Arrow and NumPy by their buffers: PyArrow's own way imports pandas, a second in every new worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, Any]  # of NumPy, as pa.Array is of Arrow
Made = TypeVar("Made")
_TOO_LONG = ("offset overflow", "overflowed binary array capacity")
_DTYPES = {pa.int32(): np.int32, pa.int64(): np.int64, pa.float64(): np.float64}


def number_array(values: npt.ArrayLike, kind: Any) -> Any:
    """Numbers as an array of the given type; none of them null."""
    data = np.ascontiguousarray(values, _DTYPES.get(kind, np.int64))
    return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(data)])


def int64_array(values: npt.ArrayLike) -> Any:
    """Integers as an int64 array."""
    return number_array(values, pa.int64())


def text_array(values: Sequence[str | bytes], kind: Any) -> Any:
    """Strings or bytes as an array of the given type; none of them null."""
    data = [value.encode() if isinstance(value, str) else value for value in values]
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum([len(value) for value in data], dtype=np.int32)])
    return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(data))])


def scalar(text: str) -> Any:
    """A string as a scalar."""
    return text_array([text], pa.string())[0]


def bool_array(values: npt.NDArray[np.bool_]) -> Any:
    """Booleans as an array."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def where(rows: pa.Table, keep: npt.NDArray[np.bool_]) -> pa.Table:
    """The rows that a mask names; all of them as they are, without a copy, where it names all."""
    return rows if keep.all() else rows.filter(bool_array(keep))


def rows_at(rows: pa.Table, at: npt.NDArray[np.int64]) -> pa.Table:
    """Rows by number; all of them as they are, without a copy, where it names all in order."""
    whole = len(at) == rows.num_rows and (not len(at) or (at[0] == 0 and bool((np.diff(at) == 1).all())))
    return rows if whole else rows.take(int64_array(at))


def mask(array: Any) -> npt.NDArray[np.bool_]:
    """Booleans as NumPy's; null is false."""
    return to_numpy(pc.fill_null(array, bool_array(np.zeros(1, np.bool_))[0]))


def in_halves(make: Callable[[pa.Table], Made], rows: pa.Table) -> list[Made]:
    """What is made of some rows: of all, or, where their texts are too long for one column (2 GB), of each half."""
    try:
        return [make(rows)]
    except Exception as error:
        if rows.num_rows < 2 or not _is_too_long(error):
            raise
    half = rows.num_rows // 2
    return in_halves(make, rows.slice(0, half)) + in_halves(make, rows.slice(half))


def _is_too_long(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, pa.ArrowInvalid):  # what an adapter raises is a cause
        error = error.__cause__
    return isinstance(error, pa.ArrowCapacityError) or any(said in str(error) for said in _TOO_LONG)


def to_numpy(array: Any) -> npt.NDArray[Any]:
    """An array of numbers or booleans without nulls as NumPy's; of numbers not for writing."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks else pa.nulls(0, array.type)
    begin, end = array.offset, array.offset + len(array)
    data = array.buffers()[1]
    if array.type == pa.bool_():
        return np.unpackbits(np.frombuffer(data or b"", np.uint8), bitorder="little")[begin:end].astype(np.bool_)
    return np.frombuffer(data or b"", _DTYPES[array.type])[begin:end]


def distinct(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The different values, sorted: NumPy's own way hashes integers, and takes ten times as long or more."""
    held = np.sort(numbers)
    new = np.ones(len(held), np.bool_)
    np.not_equal(held[1:], held[:-1], out=new[1:])
    return held[new]


def equi_join(left: Any, right: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Positions of all pairs of equal texts, none of them null."""
    if not (len(left) and len(right)):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    both = pa.chunked_array([*left.chunks, *right.chunks], pa.string()).combine_chunks()
    codes = to_numpy(both.dictionary_encode().indices)
    return pairs(equal_numbers(codes[: len(left)], codes[len(left) :]))


class Matches(NamedTuple):
    """Where numbers stand among others: how many of these, in `order`, are equal to each, and the `first` of them."""

    order: npt.NDArray[Any]
    first: npt.NDArray[Any]
    counts: npt.NDArray[Any]


def equal_numbers(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Matches:
    """The numbers on the right that each on the left is equal to."""
    order = np.argsort(right, kind="stable")
    held = right[order]
    first = np.searchsorted(held, left, "left")
    return Matches(order, first, np.searchsorted(held, left, "right") - first)


def pairs(found: Matches) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Positions of all pairs of equal numbers, the left ones in order."""
    order, first, count = found
    one = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count)
    return one, order[first[one] + within]


def one_array(column: Any) -> Any:
    """A chunked column as one array."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
