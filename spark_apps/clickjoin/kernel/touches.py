"""Joins by a key and time: of the primary events with a foreign event's key, the last or the first in its window.

An event's window reaches from `Around.back` before its time to `Around.ahead` after it, both ends included. Primary
events are ordered by time, then by id as UTF-8 bytes. Runs on executors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, distinct, int64_array, mask, rows_at, scalar, to_numpy, where
from clickjoin.kernel.event_key import found_among, micros, same_key
from clickjoin.kernel.forgotten import EMPTIED, NO_ID
from clickjoin.kernel.parquet_rows import KEYS, MATCH_KEY, PREFERRED, Files, TimeRanges
from clickjoin.model.ids import COPIES_WITHIN, Around

_KEYED = pa.schema([*KEYS, (MATCH_KEY, pa.string())])
_TOUCH = pa.schema([*_KEYED, (PREFERRED, pa.bool_())])
_FOUND = pa.schema([*_KEYED, ("payload", pa.string())])
_FIRST_PART, _WIDER = 64, 8  # of a week two hours and a half, then a day, then all
_COPIES = [*((name, "ascending") for name in (MATCH_KEY, "event_id", "event_time")), (PREFERRED, "descending")]


def pick(new: pa.Table, primary: Files, around: Around, floor: int | None) -> tuple[np.ndarray[Any, Any], pa.Table]:
    """Which of some events have a primary event, and the primary events, in the same order.

    One that was forgotten is none. Where some are preferred, it is one of these, if there is any. Of each window first
    a small part is read, at the end that counts; more of it for those events alone that have nothing there.
    Columns in: event_id, event_time, primary_id (the key). Columns out: those of a primary event's key, and its
    payload. `floor`: as in resolving.Job.
    """
    left = np.flatnonzero(mask(pc.not_equal(new["primary_id"], scalar(NO_ID))))
    places, parts = [left[:0]], [_FOUND.empty_table()]
    for width in _widths(around) if len(left) else ():
        events = rows_at(new, left)
        at, found, liked = _picked_within(events, primary, around, floor, width)
        end = micros(events)[at] + (around.ahead if around.pick == "last" else -around.back)
        sure = np.abs(end - micros(found)) <= width  # all that could come before it was read
        if around.prefer and width < around.back + around.ahead:
            sure &= liked
        places.append(left[at[sure]])
        parts.append(where(found, sure))
        left = np.delete(left, at[sure])
    at = np.concatenate(places)
    order = np.argsort(at)
    return at[order], rows_at(pa.concat_tables(parts), order)


def _widths(around: Around) -> Iterator[int]:
    """How much of a window is read, from the end that counts: microseconds, the last of them all of it."""
    whole = around.back + around.ahead
    width = max(whole // _FIRST_PART, COPIES_WITHIN)
    while width < whole:
        yield width
        width *= _WIDER
    yield whole


def _picked_within(
    events: pa.Table, primary: Files, around: Around, floor: int | None, width: int
) -> tuple[np.ndarray[Any, Any], pa.Table, np.ndarray[Any, Any]]:
    """As `pick`, of a part of each window, and perhaps of some rows beside it; and which of them are preferred."""
    touches = _touches(events, primary, around, floor, width)
    while True:
        at, picked = picked_of(events, touches, around)
        found, emptied = _records(picked, primary)
        if not emptied.num_rows:
            return at, found, mask(picked[PREFERRED])
        touches = where(touches, ~found_among(touches, emptied))


def _touches(events: pa.Table, primary: Files, around: Around, floor: int | None, width: int) -> pa.Table:
    """Primary events that may be picked, and their copies from before. Columns out: those of _TOUCH."""
    low = around.ahead - width if around.pick == "last" else -around.back
    when = TimeRanges(distinct(micros(events)) + low - COPIES_WITHIN, COPIES_WITHIN + width)
    rows = primary.rows(events["primary_id"], when, _TOUCH, MATCH_KEY, keys=events["primary_id"])
    return rows if floor is None else rows.filter(bool_array(micros(rows) >= floor))


def without_copies(rows: pa.Table) -> pa.Table:
    """Primary events, without those whose id and key another has from the same time, or up to COPIES_WITHIN before."""
    codes = to_numpy(rows["event_id"].combine_chunks().dictionary_encode().indices)
    again = np.bincount(codes)[codes] > 1 if len(codes) else np.zeros(0, np.bool_)
    if not again.any():
        return rows
    some = rows.filter(bool_array(again))
    some = some.take(pc.sort_indices(some, sort_keys=_COPIES))
    times, keep = micros(some), np.ones(some.num_rows, np.bool_)
    keep[1:] = times[1:] - times[:-1] > COPIES_WITHIN
    for column in (some[name].combine_chunks() for name in ("event_id", MATCH_KEY)):
        keep[1:] |= to_numpy(pc.not_equal(column[1:], column[:-1]))
    return pa.concat_tables([where(rows, ~again), where(some, keep)])


def picked_of(events: pa.Table, touches: pa.Table, around: Around) -> tuple[np.ndarray[Any, Any], pa.Table]:
    """Which events have one among some primary events, and which each has, in the same order."""
    touches = without_copies(touches)
    if not around.prefer:
        return _nearest(events, touches, around)
    liked = mask(touches[PREFERRED])
    at, first = _nearest(events, where(touches, liked), around)
    left = np.delete(np.arange(events.num_rows), at)
    more, others = _nearest(rows_at(events, left), where(touches, ~liked), around)
    at = np.concatenate([at, left[more]])
    order = np.argsort(at)
    return at[order], rows_at(pa.concat_tables([first, others]), order)


def _nearest(events: pa.Table, touches: pa.Table, around: Around) -> tuple[np.ndarray[Any, Any], pa.Table]:
    """As picked_of, of primary events that are there once, and none of which goes before another but by its time.

    Events and primary events of one key are never paired with each other: one key may have most of both.
    """
    keys, times = pc.unique(touches[MATCH_KEY]), micros(touches)
    code = to_numpy(pc.index_in(touches[MATCH_KEY], value_set=keys)).astype(np.int64)
    each = distinct(times)
    width = len(each) + 1
    places = code * width + np.searchsorted(each, times)
    order = _in_order(places, touches["event_id"])
    places = places[order]
    own = pc.index_in(events["primary_id"], value_set=keys)
    known = np.flatnonzero(to_numpy(pc.is_valid(own)))
    own, at = to_numpy(own.take(int64_array(known))).astype(np.int64), micros(events)[known]
    low = np.searchsorted(places, own * width + np.searchsorted(each, at - around.back))
    high = np.searchsorted(places, own * width + np.searchsorted(each, at + around.ahead, "right"))
    is_last = around.pick == "last"
    chosen = np.where(high > low, high - 1 if is_last else low, 0)
    if touches.num_rows:  # no event matches itself, and an id is there once
        is_own = _same(events["event_id"], known, touches["event_id"], order[chosen]) & (high > low)
        low, high = (low, high - is_own) if is_last else (low + is_own, high)
        chosen = np.where(high > low, high - 1 if is_last else low, 0)
    some = np.flatnonzero(high > low)
    return known[some], rows_at(touches, order[chosen[some]])


def _in_order(places: np.ndarray[Any, Any], ids: Any) -> np.ndarray[Any, Any]:
    """The order of primary events by key and time, and those of one time by id: ids of these alone are sorted."""
    order = np.argsort(places, kind="stable")
    same = np.zeros(len(order) + 1, np.bool_)
    same[1:-1] = places[order][1:] == places[order][:-1]
    tied = order[same[1:] | same[:-1]]
    if len(tied):
        rank = np.zeros(len(places), np.int64)
        rank[tied] = to_numpy(pc.rank(ids.take(int64_array(tied)), tiebreaker="dense").cast(pa.int64()))
        order = np.lexsort((rank, places))
    return order


def _same(ids: Any, at: np.ndarray[Any, Any], others: Any, chosen: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return to_numpy(pc.equal(ids.take(int64_array(at)), others.take(int64_array(chosen))))


def _records(picked: pa.Table, primary: Files) -> tuple[pa.Table, Any]:
    """The records of some primary events, in order, and those of them that were forgotten.

    Of several records of one id and time the one with the least SHA-256 counts, whichever engine or replica asks.
    """
    if not picked.num_rows:
        return _FOUND.empty_table(), _FOUND.empty_table()
    held = primary.rows(picked["event_id"], TimeRanges(distinct(micros(picked))), _FOUND, keys=picked[MATCH_KEY])
    emptied = held.filter(pc.equal(held["payload"], scalar(EMPTIED)))
    one, other = same_key(picked["event_id"], micros(picked), held["event_id"], micros(held))
    alike = mask(pc.equal(picked[MATCH_KEY].take(int64_array(one)), held[MATCH_KEY].take(int64_array(other))))
    one, other = one[alike], other[alike]
    if len(one) > picked.num_rows:
        texts = held["payload"].take(int64_array(other)).to_pylist()
        digests = np.array([hashlib.sha256(text.encode()).hexdigest() for text in texts])
        order = np.lexsort((digests, one))
        other = other[order][np.flatnonzero(np.diff(one[order], prepend=-1))]
    return rows_at(held, other), where(emptied, found_among(emptied, picked))
