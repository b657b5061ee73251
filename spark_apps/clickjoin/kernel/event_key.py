"""What rows are known by, an id and a time: which have one that others have, and which lie before a boundary.

Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, distinct, equal_numbers, equi_join, int64_array, mask, pairs, to_numpy
from clickjoin.model.ids import EVENT_KEY

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
