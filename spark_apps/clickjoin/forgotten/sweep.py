"""Taking the records of forgotten events out of every table; and which tables hold one still.

Rows of `primary` and `foreign` stay, emptied: the bytes that they were read from count as read. Claims stay: they hold
no record, and without them an event that is read again would be joined again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from clickjoin.engines.port import RowChange
from clickjoin.forgotten.known import STREAMS, Events, Key, as_arrow
from clickjoin.kernel import rewrite_task
from clickjoin.kernel.forgotten import EMPTIED, NO_ID, WHY
from clickjoin.kernel.rewrite_task import BadRecords
from clickjoin.model import failpoint
from clickjoin.model.extent import Extent
from clickjoin.model.ids import bucket_of, moment

if TYPE_CHECKING:
    from clickjoin.engines.port import Lake

_QUARANTINE = "quarantine"


class _Rule(NamedTuple):
    """What is done to a table's rows of a stream's events: columns are set, or, where none are named, rows go.

    `record`: only to rows that hold one.
    """

    table: str
    stream: str
    record: bool = True
    values: Mapping[str, str | None] | None = None


_RULES = (
    _Rule("primary", "primary", values={"payload": EMPTIED, "match_key": None, "preferred": None}),
    _Rule("foreign", "foreign", values={"payload": EMPTIED, "primary_id": NO_ID}),
    _Rule("findings", "foreign", values={"payload": None, "primary_id": None}),
    _Rule("removed_duplicates", "foreign", record=False),
    _Rule("pending", "foreign"),
    _Rule("unjoinable", "foreign"),
    _Rule("expired", "foreign"),
    _Rule("filtered", "foreign"),
    _Rule("joined", "foreign", record=False),
)


def sweep(lake: Lake, events: Events, bucket_seconds: int) -> dict[str, int]:
    """Empty or remove all rows that hold a record of these events; returns how many by table. It can be repeated."""
    done: dict[str, int] = {}
    for table, change in _changes(lake, events, bucket_seconds):
        done[table] = lake.change_rows(table, change)
        failpoint.reach(f"swept-{table}")
    return {name: count for name, count in done.items() if count}


def left(lake: Lake, events: Events, bucket_seconds: int) -> dict[str, int]:
    """How many rows hold a record of these events, by table."""
    changes = _changes(lake, events, bucket_seconds)
    found = {name: lake.count_rows(name, change) for name, change in changes}
    return {name: count for name, count in found.items() if count}


def _changes(lake: Lake, events: Events, bucket_seconds: int) -> Iterator[tuple[str, RowChange]]:
    """Tables, and what becomes of such rows there."""
    for rule in _RULES:
        keys = events.of(rule.stream)
        if keys and lake.delta.rows(rule.table):
            meant = rewrite_task.Events(as_arrow(keys))
            yield rule.table, RowChange(meant, rule.values, rule.record, _extent(keys, bucket_seconds))
    if any(events.digests.values()):
        bad = BadRecords({name: events.digests.get(name, frozenset()) for name in STREAMS})
        yield _QUARANTINE, RowChange(bad, {"raw": None, "detail": WHY})


def _extent(keys: frozenset[Key], bucket_seconds: int) -> Extent:
    times = [at for _, at in keys]
    buckets = tuple(sorted({bucket_of(at, bucket_seconds) for at in times}))
    return Extent(len(keys), buckets, moment(min(times)), moment(max(times)))
