"""Entries of `shard_timeline` that are lost: the journal's fences say what they were (Photon, section 2.2.2).

What has landed keeps the shard that it was placed in. Claims in the shard of an older entry would not be compared with
those of the same event in its own: two replicas could both claim it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.lake.log_entries import read_log
from clickjoin.model.errors import LakeError
from clickjoin.model.shards import Timeline
from clickjoin.model.txn import Txn
from clickjoin.registry.shards import fenced, fixed, load_timeline

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.port import Lake
    from clickjoin.engines.tables_port import Tables

_RESTORE = "Restore the newest copy of `shard_timeline`"


def whole_timeline(pipeline: Pipeline, lake: Lake, now: datetime) -> Timeline:
    """The timeline, with what it had lost written again. No join may run meanwhile.

    Errors: LakeError where an entry is lost that cannot be known: the journal lost its fence too, and rows have landed
    by it.
    """
    _write_again(pipeline, lake.delta, now)
    timeline = load_timeline(lake.delta)
    for table in ("foreign", "pending", "unjoinable"):
        _require_placed(lake, table, timeline)
    return timeline


def _write_again(pipeline: Pipeline, delta: Tables, now: datetime) -> None:
    there = set(delta.read("shard_timeline", columns=["from_time"])["from_time"].to_pylist())
    lost = {since: n for since, n in sorted(fenced(read_log(delta.path("journal")).txns).items()) if since not in there}
    rows = [{"from_time": t, "shards": n, "added_at": now, **fixed(pipeline)} for t, n in lost.items()]
    if rows:
        number = delta.latest_txn_version("shard_timeline", "timeline") + 1
        delta.append("shard_timeline", rows, Txn("timeline", number))


def _require_placed(lake: Lake, table: str, timeline: Timeline) -> None:
    rows = lake.read(table).where(F.expr(f"shard != {timeline.sql()}")).select("event_id", "event_time", "shard")
    for row in rows.limit(1).collect():
        raise LakeError(
            f"{lake.delta.path(table)}: event {row['event_id']} of {row['event_time']} lies in shard {row['shard']}, "
            f"where no entry of {lake.delta.path('shard_timeline')} would put it: one is lost",
            remedy=_RESTORE,
        )
