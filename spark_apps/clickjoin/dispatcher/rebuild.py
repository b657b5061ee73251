"""Making a lost journal anew, from what landed and from the transactions that every other table has recorded.

Batches go on with the number after the highest that any table knows; files go on after the last record that landed of
them. What cannot be found again is read again, and drops out as repeats. A batch that was cut short when the journal
was lost leaves landed events in no place: `clickjoin verify --repair` finds them and sends them on their way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.dispatcher.plan import STREAMS, BatchPlan
from clickjoin.errors import ConfigError
from clickjoin.events import EPOCH, MICROS
from clickjoin.lake import Txn
from clickjoin.lake.extent import timestamp
from clickjoin.registry.shards import Timeline, fence
from clickjoin.sources.base import Position
from clickjoin.sources.resume import Landed, resume
from clickjoin.tables import ALL, BATCHES

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake import Lake, SmallTables

SEQUENCES = ("join", "retry", "redrive", "recover")
_Positions = dict[str, tuple[Position, ...]]


@dataclass(frozen=True)
class Rebuilt:
    """Newest batch by `replica/sequence`, files that go on or are read again, entries of the timeline in force."""

    batches: dict[str, int]
    resumed: int
    again: int
    timeline: int


def rebuild_journal(pipeline: Pipeline, lake: Lake, now: datetime) -> Rebuilt:
    """Write table `batches` anew. No join may run meanwhile. Errors: ConfigError where a journal is there."""
    small = lake.small
    if small.exists("batches") and small.rows("batches"):
        raise ConfigError(
            f"{small.path('batches')}: the journal is there, and holds {small.rows('batches')} rows",
            remedy="Nothing is to be done; to begin it anew all the same, move that folder away first",
        )
    small.create(BATCHES)
    places = _places(lake)
    numbers = {
        (replica, sequence): number
        for replica in places
        for sequence in SEQUENCES
        if (number := newest(small, f"{pipeline.pipeline}/{replica}/{sequence}"))
    }
    resumed = again = 0
    for (replica, sequence), number in sorted(numbers.items()):
        positions: _Positions = {}
        if sequence == "join":
            found = {stream: [resume(last) for last in places[replica].get(stream, ())] for stream in STREAMS}
            positions = {stream: tuple(p for p in items if p) for stream, items in found.items()}
            resumed += sum(len(items) for items in positions.values())
            again += sum(items.count(None) for items in found.values())
        _write(small, BatchPlan(pipeline.pipeline, replica, sequence, number, int(now.timestamp() * MICROS),
                                positions=positions, snapshot=True))  # fmt: skip
    return Rebuilt({"/".join(key): number for key, number in numbers.items()}, resumed, again, _fence(lake))


def newest(small: SmallTables, app_id: str) -> int:
    """The highest batch number that any table has committed under a sequence's name; 0 if none."""
    names = [table.name for table in ALL if table.name != "batches" and small.exists(table.name)]
    return max([0, *(small.settled_txn(name, app_id) for name in names)])


def _places(lake: Lake) -> Mapping[str, Mapping[str, list[Landed]]]:
    """The last good record of every generation, by replica and stream."""
    found: dict[str, dict[str, list[Landed]]] = {}
    for stream in STREAMS:
        last = F.max_by(F.struct("path", "length", "event_id"), F.col("offset")).alias("last")
        rows = lake.read(stream).groupBy("replica", "generation").agg(last, F.max("offset").alias("offset")).collect()
        for row in rows:
            place = Landed(
                row["generation"], row["last"]["path"], row["offset"], row["last"]["length"], row["last"]["event_id"]
            )
            found.setdefault(row["replica"], {}).setdefault(stream, []).append(place)
    return found


def _write(small: SmallTables, plan: BatchPlan) -> None:
    key: dict[str, Any] = {"replica": plan.replica, "sequence": plan.sequence, "batch": plan.number}
    key["at"] = plan.planned_at
    planned = {**key, "state": "planned", "snapshot": True, "plan": plan.to_json()}
    settled = {**key, "state": "settled", "snapshot": False, "plan": '{"lost": {}}'}
    small.append("batches", [planned, settled], Txn(f"{plan.txn.app_id}/planned", plan.number))
    small.fix("batches", Txn(f"{plan.txn.app_id}/settled", plan.number))


def _fence(lake: Lake) -> int:
    """Put those entries of the timeline in force again that landed rows and claims were placed by."""
    rows = sorted((row["from_time"], row["shards"]) for row in lake.small.read("timeline").to_pylist())
    held = [rows[0]]
    for at, (since, shards) in enumerate(rows[1:], 1):
        until = rows[at + 1][0] if at + 1 < len(rows) else None
        if since != EPOCH and _placed_by(lake, Timeline(tuple(held)), since, shards, until):
            lake.small.fix("batches", fence(since))
            held.append((since, shards))
    return len(held)


def _placed_by(lake: Lake, before: Timeline, since: datetime, shards: int, until: datetime | None) -> bool:
    """Whether a row of the entry's time lies where the entry, and not the one before, puts it."""
    span = f"event_time >= {timestamp(since)}" + (f" AND event_time < {timestamp(until)}" if until else "")
    entry = Timeline(((since, shards),))
    differs = f"{span} AND shard = {entry.sql()} AND shard != {before.sql()}"
    return any(lake.read(name).where(differs).limit(1).collect() for name in ("foreign", "registry"))
