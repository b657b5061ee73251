"""Rebuilding a lost journal, from what landed and from the transactions that every other table has recorded.

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

from clickjoin.agreement.facts import Facts, gather
from clickjoin.dispatcher.held import Held
from clickjoin.dispatcher.journal import settled_json
from clickjoin.dispatcher.plan import STREAMS, BatchPlan
from clickjoin.errors import ConfigError
from clickjoin.events import EPOCH, MICROS
from clickjoin.lake import Txn
from clickjoin.lake.extent import timestamp
from clickjoin.lake.folders import put_aside
from clickjoin.lake.logs import read_log
from clickjoin.lake.relog import go_on_after
from clickjoin.registry.shards import Timeline, fence
from clickjoin.sources.base import Position
from clickjoin.sources.resume import Landed, resume
from clickjoin.tables import BATCHES

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake import Lake, SmallTables

_Positions = dict[str, tuple[Position, ...]]


@dataclass(frozen=True)
class Rebuilt:
    """Newest batch by `replica/sequence`, files that go on or are read again, entries of the timeline in force.

    `old`: where a journal that was there has been put.
    """

    batches: dict[str, int]
    resumed: int
    again: int
    timeline: int
    old: str | None = None


def rebuild_journal(pipeline: Pipeline, lake: Lake, now: datetime, *, replace: bool = False) -> Rebuilt:
    """Rebuild table `batches`. No join may run meanwhile.

    Errors: ConfigError where a journal is there, and `replace` was not asked for.
    """
    small = lake.small
    facts, old = gather(small, pipeline.pipeline), _make_way(small, now, replace)
    places = _places(lake)
    small.create(BATCHES)
    if old:
        go_on_after(small, "batches", old, now)
    seen = {key: _seen(facts, key) for key in facts.sequences}
    numbers = {key: max(held.txns.values()) for key, held in sorted(seen.items()) if held.txns}
    resumed = again = 0
    for (replica, sequence), number in numbers.items():
        positions: _Positions = {}
        if sequence == "join":
            found = {stream: [resume(last) for last in places.get(replica, {}).get(stream, ())] for stream in STREAMS}
            positions = {stream: tuple(p for p in items if p) for stream, items in found.items()}
            resumed += sum(len(items) for items in positions.values())
            again += sum(items.count(None) for items in found.values())
        plan = BatchPlan(pipeline.pipeline, replica, sequence, number, int(now.timestamp() * MICROS),
                         positions=positions, snapshot=True)  # fmt: skip
        _write(small, plan, seen[replica, sequence])
    return Rebuilt({"/".join(key): number for key, number in numbers.items()}, resumed, again, _fence(lake), old)


def _make_way(small: SmallTables, now: datetime, replace: bool) -> str | None:
    """Put a journal aside that is there; returns where it is then. One that holds nothing is written on."""
    log = read_log(small.path("batches"))
    if log.version < 1 and not log.torn:
        return None
    if not replace:
        raise ConfigError(
            f"{small.path('batches')}: the journal is there, and ends with version {log.version}",
            remedy="Nothing is to be done, unless it is older than the other tables, or damaged: then put it aside "
            "and start again with --replace",
        )
    small.replaces("journal rebuild", now)
    return put_aside(small, "batches", now)


def _seen(facts: Facts, key: tuple[str, str]) -> Held:
    """What the tables themselves hold of a sequence."""
    txns = [facts.txns(name, key) for name in facts.logs if name != "batches"]
    tables = {name: (log.table_id, facts.version(name)) for name, log in facts.logs.items()}
    return Held({name: number for found in txns for name, number in found.items()}, tables).known()


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


def _write(small: SmallTables, plan: BatchPlan, held: Held) -> None:
    key: dict[str, Any] = {"replica": plan.replica, "sequence": plan.sequence, "batch": plan.number}
    key["at"] = plan.planned_at
    planned = {**key, "state": "planned", "snapshot": True, "plan": plan.to_json()}
    settled = {**key, "state": "settled", "snapshot": False, "plan": settled_json({}, held, plan.txn.app_id)}
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
