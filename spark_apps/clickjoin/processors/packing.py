"""Arrays of numbers as a BINARY column of a key's state: of the same length for each key, or of any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

_ITEM = np.dtype([("window", "<i8"), ("count", "<i8")])


class Ragged(NamedTuple):
    """Numbers by window of many keys: position of the key, window, count; ascending by key, then window."""

    at: npt.NDArray[np.int64]
    window: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]  # type: ignore[assignment]


def packed(values: npt.NDArray[Any]) -> Any:
    """Rows of a matrix as binary values."""
    data = np.ascontiguousarray(values)
    width = data.itemsize * (data.shape[1] if data.ndim > 1 else 1)
    offsets = np.arange(0, width * len(data) + 1, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), len(data), [None, pa.py_buffer(offsets), pa.py_buffer(data.tobytes())])


def _flat(column: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Bytes of each value, none of one that is null, and all of them one after the other."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    whole = whole.fill_null(b"")
    _, ends, data = whole.buffers()
    ends = np.frombuffer(ends, np.int32)[whole.offset : whole.offset + len(whole) + 1]
    if data is None or not len(whole):
        return np.zeros(len(whole), np.int64), np.zeros(0, np.uint8)
    return np.diff(ends).astype(np.int64), np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].copy()


def unpacked(column: Any, dtype: Any) -> npt.NDArray[Any]:
    """The values that are not null of a column that `packed` made."""
    return _flat(column)[1].view(dtype)


def pack_items(at: npt.NDArray[np.int64], items: npt.NDArray[Any], keys: int) -> Any:
    """Items as a binary value for each of so many keys; `at`: the key of each, ascending."""
    ends = (np.searchsorted(at, np.arange(keys + 1)) * items.dtype.itemsize).astype(np.int32)
    data = pa.py_buffer(np.ascontiguousarray(items).tobytes())
    return pa.Array.from_buffers(pa.binary(), keys, [None, pa.py_buffer(ends), data])


def unpack_items(column: Any, dtype: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Key and items that `pack_items` made a column of; none where it is null."""
    lengths, data = _flat(column)
    return np.repeat(np.arange(len(lengths)), lengths // dtype.itemsize), data.view(dtype)


def pack_ragged(items: Ragged, keys: int) -> Any:
    """Counts by window as a binary value for each of so many keys."""
    data = np.empty(len(items.at), _ITEM)
    data["window"], data["count"] = items.window, items.count
    return pack_items(items.at, data, keys)


def unpack_ragged(column: Any) -> Ragged:
    """The counts that `pack_ragged` made a column of; none where it is null."""
    at, data = unpack_items(column, _ITEM)
    return Ragged(at, data["window"], data["count"])


def merged(known: Ragged, new: Ragged) -> Ragged:
    """Both, with the counts of one key and window added up."""
    at = np.concatenate([known.at, new.at])
    window, count = np.concatenate([known.window, new.window]), np.concatenate([known.count, new.count])
    order = np.lexsort((window, at))
    at, window, count = at[order], window[order], count[order]
    first = np.ones(len(at), bool)
    first[1:] = (at[1:] != at[:-1]) | (window[1:] != window[:-1])
    starts = np.flatnonzero(first)
    return Ragged(at[starts], window[starts], np.add.reduceat(count, starts) if len(starts) else count)


def counted(at: npt.NDArray[np.int64], window: npt.NDArray[np.int64]) -> Ragged:
    """How often each key and window is there."""
    none = np.zeros(0, np.int64)
    return merged(Ragged(none, none, none), Ragged(at, window, np.ones(len(at), np.int64)))
