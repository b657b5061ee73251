"""What is in the side outputs, counted and listed, newest first: no Spark, and memory for some rows of a table only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.model.ids import EVENT_KEY
from clickjoin.retry.pending import newest_rows

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

HELD = 500_000  # rows of events, without their records, that are compared with each other at a time
_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads whatever the times have in common, such as whole minutes
_EVENT = (*EVENT_KEY, "primary_id", "primary_time")


@dataclass(frozen=True)
class Layout:
    """How a table is listed: the time that orders its rows, what orders those of one time, its columns, and what it can
    be counted by, the usual one first.
    """

    time: str
    then: tuple[str, ...]
    columns: tuple[str, ...]
    by: Mapping[str, tuple[str, ...]]


_HOUR: dict[str, tuple[str, ...]] = {"hour": ("hour",)}
LAYOUTS = {
    "pending": Layout(
        "event_time",
        ("event_id", "replica"),
        (*_EVENT, "state", "due_at", "attempt", "round", "first_seen", "replica", "batch"),
        {"attempt": ("state", "attempt")} | _HOUR,
    ),
    "unjoinable": Layout(
        "event_time",
        ("event_id",),
        (*_EVENT, "at", "attempt", "round", "first_seen", "token"),
        {"attempt": ("attempt",)} | _HOUR,
    ),
    "expired": Layout("event_time", ("event_id",), (*_EVENT, "at", "sequence", "replica", "batch"), _HOUR),
    "quarantine": Layout(
        "at",
        ("path", "offset", "replica"),
        ("at", "stream", "reason", "detail", "path", "offset", "length", "replica", "batch"),
        {"reason": ("stream", "reason"), "file": ("path",)} | _HOUR,
    ),
}


@dataclass(frozen=True)
class Listed:
    """`count`: all in the range; `groups`: counts by what was chosen; `rows`: the newest, as many as asked for."""

    count: int
    groups: list[dict[str, Any]]
    rows: list[dict[str, Any]]


def listed(
    delta: DeltaReader,
    name: str,
    now: datetime,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    by: str = "",
    limit: int = 20,
) -> Listed:
    """What a table of LAYOUTS holds from `since` to before `until`, by the time that its layout names.

    Of `pending`, the events that wait, of each replica; their state is `due` or `waiting`. Of `expired`, distinct
    events. Of `quarantine`, records: one of many pieces counts once, and one that two replicas read twice.
    """
    layout = LAYOUTS[name]
    keys = layout.by[by or next(iter(layout.by))]
    span = ((">=", since), ("<", until))
    filters = [(layout.time, op, moment) for op, moment in span if moment] or None
    counts: Counter[tuple[Any, ...]] = Counter()
    rows: pa.Table | None = None
    for part in _parts(delta, name, filters, now):
        _count(counts, part, layout.time, keys)
        some = part.select(layout.columns)
        rows = _newest(some if rows is None else pa.concat_tables([rows, some]), layout, limit)
    groups = [dict(zip(keys, values, strict=True)) | {"count": n} for values, n in _in_order(counts, keys)]
    return Listed(counts.total(), groups, [] if rows is None else rows.to_pylist())


def _parts(delta: DeltaReader, name: str, filters: list[Any] | None, now: datetime) -> Iterator[pa.Table]:
    columns = LAYOUTS[name].columns
    if name == "quarantine":
        for batch in delta.batches(name, filters, [*columns, "part"]):
            rows = pa.Table.from_batches([batch])
            yield rows.filter(pc.equal(pc.fill_null(rows["part"], 0), 0))
    elif name == "unjoinable":
        yield from (pa.Table.from_batches([batch]) for batch in delta.batches(name, filters, columns))
    elif name == "expired":
        yield from map(_distinct, _whole_events(delta, name, filters, columns))
    else:
        yield from (_waiting(rows, now) for rows in _whole_events(delta, name, filters, columns))


def _whole_events(
    delta: DeltaReader, name: str, filters: list[Any] | None, columns: Iterable[str]
) -> Iterator[pa.Table]:
    """A table's rows in parts that hold all rows of their events, about HELD of them each.

    The table is read once for each part: that takes longer than to hold all of it, and less memory.
    """
    parts = 1 + delta.rows(name) // HELD
    for number in range(parts):
        batches = list(_of_part(delta.batches(name, filters, list(columns)), number, parts))
        if batches:
            yield pa.Table.from_batches(batches)


def _of_part(batches: Iterable[pa.RecordBatch], number: int, parts: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        times = pc.cast(batch["event_time"], pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64)
        mixed = (times * _MIX) >> np.uint64(32)
        yield batch if parts == 1 else batch.filter(pa.array(mixed % np.uint64(parts) == number))


def _waiting(rows: pa.Table, now: datetime) -> pa.Table:
    found = newest_rows(rows)
    found = found.filter(pc.equal(found["state"], "waiting"))
    due = pc.fill_null(pc.less_equal(found["due_at"], pa.scalar(now, found["due_at"].type)), False)
    return found.set_column(found.schema.get_field_index("state"), "state", pc.if_else(due, "due", "waiting"))


def _distinct(rows: pa.Table) -> pa.Table:
    ordered = rows.sort_by([("at", "descending")]).append_column("_row", pa.array(range(rows.num_rows), pa.int64()))
    first = ordered.group_by(list(EVENT_KEY)).aggregate([("_row", "min")])["_row_min"]
    return ordered.take(first).drop_columns("_row")


def _count(counts: Counter[tuple[Any, ...]], rows: pa.Table, time: str, keys: tuple[str, ...]) -> None:
    if "hour" in keys:
        rows = rows.append_column("hour", pc.floor_temporal(rows[time], unit="hour"))
    for group in rows.group_by(list(keys)).aggregate([([], "count_all")]).to_pylist():
        counts[tuple(group[key] for key in keys)] += group["count_all"]


def _in_order(counts: Counter[tuple[Any, ...]], keys: tuple[str, ...]) -> list[tuple[tuple[Any, ...], int]]:
    """Hours newest first, attempts as they come, all others the most frequent first."""
    if keys == ("hour",):
        return sorted(counts.items(), reverse=True)
    return sorted(counts.items()) if "attempt" in keys else counts.most_common()


def _newest(rows: pa.Table, layout: Layout, limit: int) -> pa.Table:
    order = [(layout.time, "descending"), *((name, "ascending") for name in layout.then)]
    return rows.sort_by(order).slice(0, limit).combine_chunks()
