"""What rows are known by, an id and a time: which have one that others have, and which lie before a boundary.

And the CRC-32 of whole columns of ids: the same numbers as model.ids.crc_of, without a call for each. It is linear:
that of a text is the one of as many zero bytes, XOR what each byte changes in it, which depends on the byte and on how
many follow it alone. So a table for each distance from the end is enough. Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, distinct, equal_numbers, equi_join, int64_array, mask, pairs, to_numpy
from clickjoin.model.ids import EVENT_KEY

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Crcs = npt.NDArray[np.uint32]

_SHARED = 2  # pairs of a time an event


def micros(rows: pa.Table, name: str = "event_time") -> np.ndarray[Any, Any]:
    """A column of times, without nulls, as microseconds since 1970."""
    return to_numpy(rows[name].cast(pa.int64()))


def dates_of(rows: pa.Table) -> pa.ChunkedArray:
    """The date of each event in UTC."""
    return rows["event_time"].cast(pa.date32())


def first_of(rows: pa.Table, order: Sequence[str]) -> pa.Table:
    """Of rows with the same key the first in an order."""
    again = doubled(rows)
    if not again.any():
        return rows
    more = rows.filter(bool_array(again))
    more = more.take(pc.sort_indices(more, sort_keys=[(name, "ascending") for name in (*EVENT_KEY, *order)]))
    names, times = to_numpy(more["event_id"].combine_chunks().dictionary_encode().indices), micros(more)
    new = np.ones(more.num_rows, np.bool_)
    new[1:] = (names[1:] != names[:-1]) | (times[1:] != times[:-1])
    return pa.concat_tables([rows.filter(bool_array(~again)), more.filter(bool_array(new))])


def first_of_id(rows: pa.Table, order: Sequence[str] = ()) -> pa.Table:
    """Of rows with the same id, whatever their times, the first by time, then in an order."""
    named = rows["event_id"].combine_chunks().dictionary_encode()
    if len(named.dictionary) == rows.num_rows:
        return rows
    ids = to_numpy(named.indices)
    keys = [(name, "ascending") for name in ("event_time", *order)]
    at = to_numpy(pc.sort_indices(rows, sort_keys=keys).cast(pa.int64()))
    first = at[np.unique(ids[at], return_index=True)[1]]
    return rows.take(int64_array(np.sort(first)))


def doubled(rows: pa.Table) -> np.ndarray[Any, Any]:
    """Which rows have a key that another has too; some may have its id alone.

    Ids are compared of those with a time that another has: sorting times takes a tenth of what hashing ids does.
    """
    times, found = micros(rows), np.zeros(rows.num_rows, np.bool_)
    held = np.sort(times)
    shared = distinct(held[1:][held[1:] == held[:-1]])
    if not len(shared):
        return found
    at = np.minimum(np.searchsorted(shared, times), len(shared) - 1)
    maybe = np.flatnonzero(shared[at] == times)
    names = rows["event_id"] if len(maybe) == len(times) else rows["event_id"].take(int64_array(maybe))
    codes = to_numpy(names.combine_chunks().dictionary_encode().indices)
    found[maybe] = np.bincount(codes)[codes] > 1
    return found


def found_among(rows: pa.Table, keys: pa.Table) -> np.ndarray[Any, Any]:
    """Which rows have one of these keys."""
    found = np.zeros(rows.num_rows, np.bool_)
    if not keys.num_rows:
        return found
    one, _ = same_key(rows["event_id"], micros(rows), keys["event_id"], micros(keys))
    found[one] = True
    return found


def same_key(
    ids: pa.ChunkedArray, times: np.ndarray[Any, Any], other_ids: pa.ChunkedArray, other_times: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Positions of all pairs of the same id and time, the first ones in order.

    Times go first, and ids of the same time are compared: to hash ids takes several times as long. Where many events
    share a time, as where it is a whole second, ids go first.
    """
    of_time = equal_numbers(times, other_times)
    if of_time.counts.sum() > _SHARED * (len(times) + len(other_times)):
        one, other = equi_join(ids, other_ids)
        same = times[one] == other_times[other]
    else:
        one, other = pairs(of_time)
        same = mask(pc.equal(ids.take(int64_array(one)), other_ids.take(int64_array(other))))
    return one[same], other[same]


def values_of(rows: pa.Table, others: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of other rows, each of a key of its own, for the rows of their keys; null where none has it."""
    one, other = same_key(rows["event_id"], micros(rows), others["event_id"], micros(others))
    at = np.full(rows.num_rows, -1, np.int64)
    at[one] = other
    there = pc.if_else(bool_array(at >= 0), int64_array(at), pa.nulls(1, pa.int64())[0])
    return others[name].take(there)


def lie_before(rows: pa.Table, boundary: dict[int, int]) -> np.ndarray[Any, Any]:
    """Which rows are older than their shard's boundary, microseconds."""
    times, shards = micros(rows), to_numpy(rows["shard"])
    found = np.zeros(rows.num_rows, np.bool_)
    for shard, limit in boundary.items():
        found |= (shards == shard) & (times < limit)
    return found


_ROWS = 8192  # at a time: what is looked up stays in the processor's cache
_LONG = 96  # mean bytes of an id from which zlib's own loop is faster
_BYTE, _SHIFT = np.uint32(255), np.uint32(8)


def crcs_of(ids: pa.ChunkedArray) -> Crcs:
    """CRC-32 of each id's UTF-8 bytes. Column in: string, without nulls."""
    parts = [_of_chunk(chunk) for chunk in ids.chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint32)


def _of_chunk(ids: Any) -> Crcs:
    _, edges, data = ids.buffers()
    edges = np.frombuffer(edges, np.int32)[ids.offset : ids.offset + len(ids) + 1].astype(np.int64)
    if edges[-1] - edges[0] > _LONG * len(ids):
        return np.fromiter((zlib.crc32(text.encode()) for text in ids.to_pylist()), np.uint32, len(ids))
    data = np.frombuffer(data or b"", np.uint8)
    longest = int(np.diff(edges).max())
    tables, zeros = _tables(longest), np.array([zlib.crc32(bytes(length)) for length in range(longest + 1)], np.uint32)
    found = np.empty(len(ids), np.uint32)
    for low in range(0, len(ids), _ROWS):
        some = edges[low : low + _ROWS + 1]
        found[low : low + _ROWS] = _of_rows(data, some[:-1], some[1:], tables, zeros)
    return found


def _of_rows(data: npt.NDArray[np.uint8], starts: Ints, ends: Ints, tables: list[Crcs], zeros: Crcs) -> Crcs:
    order = np.argsort(starts - ends, kind="stable")  # the longest first
    short, last = (starts - ends)[order], ends[order] - 1
    crcs = zeros[-short]
    for behind in range(-int(short[0])):
        count = int(np.searchsorted(short, -behind))  # so many have a byte that far from their end
        crcs[:count] ^= tables[behind].take(data.take(last[:count] - behind))
    found = np.empty(len(order), np.uint32)
    found[order] = crcs
    return found


def _tables(longest: int) -> list[Crcs]:
    """What a byte changes, by how many bytes follow it."""
    zero = zlib.crc32(b"\0")
    tables = [np.array([zlib.crc32(bytes([byte])) ^ zero for byte in range(256)], np.uint32)]
    for _ in range(longest - 1):
        tables.append(tables[-1] >> _SHIFT ^ tables[0][tables[-1] & _BYTE])
    return tables
