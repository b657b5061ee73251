"""Resharding without downtime (Photon, section 2.2.2): from a future event time on, there are more or fewer shards.

An entry is proposed in table `shard_timeline`, and in force once it is fenced: by a commit to the journal that directly
follows a version in which no batch was planned that could hold an event of the entry's time. Batches that are planned
later read the timeline after that, and see the entry. So no two batches ever differ about an event's
shard, however late the fence is committed, and whatever the clocks say.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.agreement.noted import note
from clickjoin.dispatcher.journal import FENCE
from clickjoin.model import failpoint
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.extent import timestamp
from clickjoin.model.ids import EPOCH, bucket_at, bucket_start
from clickjoin.model.shards import Timeline
from clickjoin.model.txn import Txn
from clickjoin.registry.shards import fence, fixed, in_force, load_timeline, require_same

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.tables_port import Tables
    from clickjoin.lake.delta_reader import DeltaReader

LEAD = timedelta(seconds=60)
MOST = 10_000
MOST_AHEAD = timedelta(days=30)
_FENCINGS = 50


@dataclass(frozen=True)
class Entry:
    """An entry of the timeline as it is kept: in force, or proposed and never fenced (`void`)."""

    since: datetime
    shards: int
    added_at: datetime
    void: bool


def entries(delta: DeltaReader) -> list[Entry]:
    """All entries, oldest first."""
    rows = delta.read("shard_timeline").to_pylist()
    found = [
        Entry(
            r["from_time"], r["shards"], r["added_at"], r["from_time"] != EPOCH and not in_force(delta, r["from_time"])
        )
        for r in sorted(rows, key=lambda row: row["added_at"], reverse=True)
    ]
    # Of the first one there is a row for each form of the event time that was added since.
    return sorted({entry.since: entry for entry in found}.values(), key=lambda entry: entry.since)


def earliest(pipeline: Pipeline, now: datetime) -> datetime:
    """The first bucket that is later than any clock in the system can read, with time to make it known."""
    width = int(pipeline.registry.bucket)
    sure = now + 2 * timedelta(seconds=pipeline.limits.max_skew) + LEAD
    return bucket_start(bucket_at(sure, width)) + timedelta(seconds=width)


def reshard(delta: Tables, pipeline: Pipeline, shards: int, since: datetime | None, now: datetime) -> Timeline:
    """Spread events from `since` on (default: the earliest time that is safe) over another number of shards.

    Errors: ConfigError, which says why an entry is refused; LakeError where another change came first.
    """
    require_same(delta, pipeline)
    since = since or earliest(pipeline, now)
    check(pipeline, load_timeline(delta), delta.read("shard_timeline")["from_time"].to_pylist(), shards, since, now)
    row = {
        "from_time": since,
        "shards": shards,
        "added_at": now,
        **fixed(pipeline),
    }
    if not delta.append(
        "shard_timeline", [row], Txn("timeline", delta.latest_txn_version("shard_timeline", "timeline") + 1)
    ):
        raise LakeError("the timeline was changed by another just now", remedy="Look at it, then try again")
    failpoint.reach("proposed")
    note(delta, "shard_timeline")  # or the entry could be in force, and the timeline be put back to before
    _put_in_force(delta, pipeline, since, shards)
    failpoint.reach("fenced")
    return load_timeline(delta)


def check(
    pipeline: Pipeline, timeline: Timeline, taken: list[datetime], shards: int, since: datetime, now: datetime
) -> None:
    """Refuse what must not be. Pure. Errors: ConfigError."""
    last_since, last = timeline.entries[-1]
    soonest = earliest(pipeline, now)
    if not 1 <= shards <= MOST:
        raise ConfigError(f"{shards} shards: must be from 1 to {MOST}", remedy="Give another number")
    if since <= now + 2 * timedelta(seconds=pipeline.limits.max_skew):
        raise ConfigError(
            f"{since} is not later than every clock in the system can read (now is {now}, limits.max_skew "
            f"{pipeline.limits.max_skew:.0f} s): events of that time may have been claimed",
            remedy=f"Give {soonest} or later",
        )
    if since > now + MOST_AHEAD:
        raise ConfigError(
            f"{since} is more than {MOST_AHEAD.days} days ahead, and no other entry could come before it",
            remedy=f"Give a time before {now + MOST_AHEAD:%Y-%m-%d}",
        )
    if since <= last_since or since in taken:
        raise ConfigError(
            f"{since}: the timeline has an entry from {max(last_since, *taken)} already, and entries are never edited",
            remedy=f"Give a time after {max(last_since, *taken)}",
        )
    if since.microsecond or int(since.timestamp()) % int(pipeline.registry.bucket):
        raise ConfigError(f"{since} lies inside a bucket", remedy=f"Give the start of one, such as {soonest}")
    if shards == last:
        raise ConfigError(f"events are spread over {shards} shards already", remedy="Give another number")


def _put_in_force(delta: Tables, pipeline: Pipeline, since: datetime, shards: int) -> None:
    skew = timedelta(seconds=pipeline.limits.max_skew)
    for _ in range(_FENCINGS):
        version = delta.version("journal")
        planned = newest_plan(delta)
        if planned and planned + skew >= since:
            raise LakeError(
                f"a batch planned at {planned} may hold events of {since}: the entry came too late and is void",
                remedy="Reshard from a later time on",
            )
        row = {
            "replica": "all", "sequence": FENCE, "batch": 1 + shards, "state": "fenced", "at": since, "snapshot": False,
            "plan": "{}",
        }  # fmt: skip
        if delta.append_next(
            "journal", version, row, f"t.state = 'planned' AND t.at >= {timestamp(since - skew)}", fence(since, shards)
        ):
            return
    raise LakeError(
        f"the journal changed {_FENCINGS} times while the entry from {since} was put in force: it is void",
        remedy="Reshard from a later time on",
    )


def newest_plan(delta: Tables) -> datetime | None:
    """When the newest batch of all replicas was planned, by its own clock."""
    rows: pa.Table = delta.read("journal", [("state", "=", "planned")], ["at"])
    newest: datetime | None = pc.max(rows["at"]).as_py() if rows.num_rows else None
    return newest
