"""The EventStore's look-up by Arrow (paper, 3.4): the primary events of some events, out of data files.

Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, distinct, equi_join, int64_array, mask, rows_at, scalar, to_numpy
from clickjoin.kernel.event_key import doubled, first_of, found_among, micros, same_key
from clickjoin.kernel.forgotten import EMPTIED
from clickjoin.kernel.parquet_rows import KEYS, Files, TimeRanges
from clickjoin.kernel.touches import pick
from clickjoin.model.ids import Around

_TIME = pa.timestamp("us", "UTC")
_LANDED = ("landed_at", "replica", "source_partition", "offset")  # of primary records with one name the first counts
_BARE = pa.schema([*KEYS, ("payload", pa.string())])
_HELD = pa.schema([*_BARE, ("landed_at", _TIME), ("replica", pa.string()), ("source_partition", pa.string()),
                   ("offset", pa.int64())])  # fmt: skip
_FEW_A_FILE = 200  # events: of so few each column costs more than its rows


_LAST = 1 << 62  # microseconds, further than any time lies


def look_up(
    new: pa.Table, primary: Files, around: Around | None, floor: int | None
) -> tuple[np.ndarray[Any, Any], pa.Table]:
    """Which of some events have a primary event, and the primary events, in the same order.

    One that was forgotten is none. `around`, `floor`: as in resolving.Job. Columns out: those of a primary event, its
    key and its payload among them.
    """
    if not new.num_rows:
        return np.zeros(0, np.int64), pa.Table.from_batches([], _HELD)
    if around and around.pick:
        return pick(new, primary, around, floor)
    ids, when = new["primary_id"], _times(new, around)
    held = first_landed(primary, ids, when) if around is None else primary.rows(ids, when, _HELD)
    if floor is not None:
        held = held.filter(bool_array(micros(held) >= floor))
    emptied = pc.equal(held["payload"], scalar(EMPTIED))
    if pc.any(emptied).as_py():  # another copy of the event may hold its record still
        held = held.filter(bool_array(~found_among(held, held.filter(emptied))))
    return paired(new, held, around)


def as_found(rows: pa.Table, found: pa.Table, around: Around | None) -> pa.Table:
    """Events with the time of the primary event that was found for each, and its id where they named a key."""
    named = {"primary_time": found["event_time"]}
    if around and around.pick:
        named["primary_id"] = found["event_id"]
    for name, column in named.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _times(new: pa.Table, around: Around | None) -> TimeRanges:
    """When the primary events of some events can lie."""
    if around is None:
        return TimeRanges(distinct(micros(new, "primary_time")))
    return TimeRanges(distinct(micros(new) - around.back), around.back + around.ahead)


def paired(new: pa.Table, held: pa.Table, around: Around | None) -> tuple[np.ndarray[Any, Any], pa.Table]:
    """The same, where the primary events are read already; those whose times are known are each of a key of its own."""
    if around is None:
        one, other = same_key(new["primary_id"], micros(new, "primary_time"), held["event_id"], micros(held))
        return one, rows_at(held, other)
    one, other = equi_join(new["primary_id"], held["event_id"])
    wanted, at = micros(new)[one], micros(held)[other]
    fits = (at <= wanted + around.ahead) & (at >= wanted - around.back)
    one, other = one[fits], other[fits]
    if (one[1:] == one[:-1]).any():  # of several that fit the latest up to it; of one that came twice the first to land
        keys = held.select(_LANDED).take(int64_array(other)).append_column("row", int64_array(one))
        at, wanted = micros(held)[other], micros(new)[one]
        keys = keys.append_column("far", int64_array(np.where(at <= wanted, wanted - at, _LAST + at - wanted)))
        order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in ("row", "far", *_LANDED)])
        first = np.flatnonzero(np.diff(one, prepend=-1))  # each row stands where it stood, its pairs in order now
        one, other = one[first], other[to_numpy(order.cast(pa.int64()))[first]]
    return one, rows_at(held, other)


def names_forgotten(rows: pa.Table, primary: Files, around: Around | None) -> np.ndarray[Any, Any]:
    """Which of some events name a primary event whose record was forgotten. `around` as in `look_up`."""
    found = np.zeros(rows.num_rows, np.bool_)
    if rows.num_rows:
        held = primary.rows(rows["primary_id"], _times(rows, around), _HELD)
        found[paired(rows, held.filter(pc.equal(held["payload"], scalar(EMPTIED))), around)[0]] = True
    return found


def none_needed(new: pa.Table) -> tuple[np.ndarray[Any, Any], pa.Table]:
    """The same of one stream: each event counts whose record is there, and has no primary event: all are null."""
    at = np.flatnonzero(mask(pc.not_equal(new["payload"], scalar(EMPTIED))))
    return at, pa.table({field.name: pa.nulls(len(at), field.type) for field in _BARE}, schema=_BARE)


def first_landed(files: Files, ids: pa.ChunkedArray, when: TimeRanges) -> pa.Table:
    """Landed events with these ids, the first of each that landed; some of other ids, of the same times, may be there.

    Columns out: its key and its payload among them.
    """
    if len(ids) > _FEW_A_FILE * len(files.near(when)):
        return first_of(files.rows(ids, when, _HELD, others=True), _LANDED)
    held = files.rows(ids, when, _BARE, others=True)
    again = doubled(held)
    if not again.any():
        return held
    twice = held.filter(bool_array(again))
    twice = files.rows(twice["event_id"], TimeRanges(distinct(micros(twice))), _HELD)
    return pa.concat_tables([held.filter(bool_array(~again)), first_of(twice, _LANDED).select(_BARE.names)])
