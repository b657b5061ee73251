"""Joins by a key and time: of the primary events with a foreign event's key, the last, the first or all in its window.

An event's window reaches from `Around.back` before its time to `Around.ahead` after it, both ends included. Primary
events are ordered by time, then by id as UTF-8 bytes. Runs on executors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.adapter import ALL_TOUCHES
from clickjoin.kernel.arrays import (
    Array,
    bool_array,
    distinct,
    equi_join,
    int64_array,
    mask,
    number_array,
    one_array,
    rows_at,
    scalar,
    to_numpy,
    where,
)
from clickjoin.kernel.event_key import found_among, micros, same_key
from clickjoin.kernel.forgotten import EMPTIED, NO_ID
from clickjoin.kernel.parquet_rows import KEYS, MATCH_KEY, PREFERRED, Files, TimeRanges
from clickjoin.model.ids import COPIES_WITHIN, Around
from clickjoin.model.places import TOUCH_COUNT, TOUCHES

_KEYED = pa.schema([*KEYS, (MATCH_KEY, pa.string())])
_TOUCH = pa.schema([*_KEYED, (PREFERRED, pa.bool_())])
_FOUND = pa.schema([*_KEYED, ("payload", pa.string())])
_FIRST_PART, _WIDER = 64, 8  # of a week two hours and a half, then a day, then all
_NEVER = 1 << 62  # a place that no primary event has
_COPIES = [*((name, "ascending") for name in (MATCH_KEY, "event_id", "event_time")), (PREFERRED, "descending")]


def pick(new: pa.Table, primary: Files, around: Around, floor: int | None) -> tuple[np.ndarray[Any, Any], pa.Table]:
    """Which of some events have a primary event, and the primary events, in the same order.

    One that was forgotten is none. Where some are preferred, it is one of these, if there is any. Of each window first
    a small part is read, at the end that counts; more of it for those events alone that have nothing there.
    Columns in: event_id, event_time, primary_id (the key). Columns out: those of a primary event's key, and its
    payload; with `all` ALL_TOUCHES too. `floor`: as in resolving.Job.
    """
    if around.pick == "all":
        return _all(new, primary, around, floor)
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
    low = -around.back if around.pick == "first" else around.ahead - width
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
    known, low, high, order = _ranges(events, touches, around)
    is_last = around.pick == "last"
    chosen = np.where(high > low, high - 1 if is_last else low, 0)
    if touches.num_rows:  # no event matches itself, and an id is there once
        is_own = _same(events["event_id"], known, touches["event_id"], order[chosen]) & (high > low)
        low, high = (low, high - is_own) if is_last else (low + is_own, high)
        chosen = np.where(high > low, high - 1 if is_last else low, 0)
    some = np.flatnonzero(high > low)
    return known[some], rows_at(touches, order[chosen[some]])


def _ranges(events: pa.Table, touches: pa.Table, around: Around) -> tuple[Array, Array, Array, Array]:
    """Events whose key is known, the places [low, high) of their windows, and which primary event is at each place."""
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
    return known, low, high, order


class Windows(NamedTuple):
    """The primary events in the windows of some events (`at`), of more than a limit the first and the newest.

    `counts`: how many a window has. Of each that is kept: the number of its event in `at` (`of`), its `position` in the
    window from 1 on, and which primary event it is (`touch`).
    """

    at: Array
    counts: Array
    of: Array
    position: Array
    touch: Array


def windows_of(events: pa.Table, touches: pa.Table, around: Around) -> Windows:
    """The windows that are not empty, of primary events that are there once. As in _nearest no two are paired."""
    known, low, high, order = _ranges(events, touches, around)
    own, place = _own(events, touches, known, order)
    inside = (low[own] <= place) & (place < high[own])
    own, place = own[inside], place[inside]
    counts = high - low - np.bincount(own, minlength=len(known))
    kept = np.minimum(np.maximum(counts, 0), around.limit)
    of = np.repeat(np.arange(len(known)), kept)
    position = np.arange(len(of)) - np.repeat(np.cumsum(kept) - kept, kept)
    position += np.where(position > 0, (counts - kept)[of], 0)
    chosen = low[of] + position
    turn = np.arange(len(own)) - np.searchsorted(own, own)  # an id that came hours apart is there more than once
    for number in range(turn.max(initial=-1) + 1):
        passed = np.full(len(known), _NEVER)
        passed[own[turn == number]] = place[turn == number]
        chosen += chosen >= passed[of]
    some = np.flatnonzero(kept)
    return Windows(known[some], counts[some], np.searchsorted(some, of), position + 1, order[chosen])


def _own(events: pa.Table, touches: pa.Table, known: Array, order: Array) -> tuple[Array, Array]:
    """Where events stand among the primary events of their key: their numbers in `known`, and their places, sorted."""
    one, other = equi_join(events["event_id"].take(int64_array(known)), touches["event_id"])
    keys = events["primary_id"].take(int64_array(known[one]))
    same = mask(pc.equal(keys, touches[MATCH_KEY].take(int64_array(other))))
    place = np.zeros(len(order), np.int64)
    place[order] = np.arange(len(order))
    one, at = one[same], place[other[same]]
    sorted_ = np.lexsort((at, one))
    return one[sorted_], at[sorted_]


def _all(new: pa.Table, primary: Files, around: Around, floor: int | None) -> tuple[Array, pa.Table]:
    """As `pick`, of all primary events of each window: the last of each, and ALL_TOUCHES."""
    left = np.flatnonzero(mask(pc.not_equal(new["primary_id"], scalar(NO_ID))))
    if not len(left):
        return left, _FOUND.empty_table()
    events = rows_at(new, left)
    touches = _touches(events, primary, around, floor, around.back + around.ahead)
    while True:
        each = without_copies(touches)
        found = windows_of(events, each, around)
        used = distinct(found.touch)
        records, emptied = _records(rows_at(each, used), primary)
        if not emptied.num_rows:
            return left[found.at], _with_touches(found._replace(touch=np.searchsorted(used, found.touch)), records)
        touches = where(touches, ~found_among(touches, emptied))


def _with_touches(found: Windows, records: pa.Table) -> pa.Table:
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(found.of, minlength=len(found.at)))])
    whole, at = records.combine_chunks(), int64_array(found.touch)
    columns = {name: one_array(whole[name]) for name in whole.column_names}
    each = {name: columns[name].take(at) for name in KEYS.names} | {"position": int64_array(found.position)}
    each["payload"] = pa.DictionaryArray.from_arrays(number_array(found.touch, pa.int32()), columns["payload"])
    kind = ALL_TOUCHES.field(TOUCHES).type
    rows = pa.StructArray.from_arrays([each[field.name] for field in kind.value_type], fields=list(kind.value_type))
    lists = pa.ListArray.from_arrays(number_array(ends, pa.int32()), rows, type=kind)
    last = rows_at(records, found.touch[ends[1:] - 1])
    return last.append_column(TOUCHES, lists).append_column(TOUCH_COUNT, int64_array(found.counts))


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
