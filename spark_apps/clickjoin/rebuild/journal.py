"""Rebuilding a lost journal, from what landed and from the transactions that every other table has recorded.

Batches go on with the number after the highest that any table knows; sources go on after the last record that landed
of each partition. What cannot be found again is read again, and drops out as repeats. A batch that was cut short when
the journal was lost leaves landed events in no place: `clickjoin verify --repair` finds them and sends them on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.agreement.facts import Facts, gather
from clickjoin.dispatcher.committed import CommittedTxns
from clickjoin.dispatcher.journal import settled_json
from clickjoin.lake.folders import TableFolders, moving_tables
from clickjoin.lake.log_entries import read_log
from clickjoin.lake.restored_log import go_on_after
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.errors import ConfigError
from clickjoin.model.extent import timestamp
from clickjoin.model.ids import EPOCH, MICROS
from clickjoin.model.shards import Timeline
from clickjoin.model.split import LastRecord, SourceOffset
from clickjoin.model.txn import Txn
from clickjoin.registry.shards import fence
from clickjoin.schemas import BATCHES
from clickjoin.sources.open import open_source

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.port import Lake
    from clickjoin.engines.tables_port import Tables

_Offsets = dict[str, tuple[SourceOffset, ...]]


@dataclass(frozen=True)
class JournalSummary:
    """Newest batch by `replica/sequence`, partitions that go on or are read again, entries of the timeline in force.

    `old`: where a journal that was there has been put.
    """

    batches: dict[str, int]
    resumed: int
    again: int
    timeline: int
    old: str | None = None


def rebuild_journal(pipeline: Pipeline, lake: Lake, now: datetime, *, replace: bool = False) -> JournalSummary:
    """Rebuild table `journal`. No join may run meanwhile.

    Errors: ConfigError where a journal is there, and `replace` was not asked for.
    """
    with moving_tables(lake.delta, "another rebuild") as folders:
        return _rebuild(pipeline, lake, folders, now, replace=replace)


def _rebuild(pipeline: Pipeline, lake: Lake, folders: TableFolders, now: datetime, *, replace: bool) -> JournalSummary:
    delta = lake.delta
    facts, old = gather(delta, pipeline.pipeline), _make_way(delta, folders, now, replace)
    places = _places(pipeline, lake)
    delta.create(BATCHES)
    if newest := folders.newest_aside("journal"):
        go_on_after(delta, "journal", newest, now)
    # Before any plan: where this is killed the tables are ahead of it, and nothing is joined by an older timeline.
    timeline = _fence(lake)
    seen = {key: _seen(facts, key) for key in facts.sequences}
    numbers = {key: max(held.txns.values()) for key, held in sorted(seen.items()) if held.txns}
    resumed = again = 0
    for (replica, sequence), number in numbers.items():
        offsets: _Offsets = {}
        if sequence == "join":
            found = _resumed(pipeline, places.get(replica, {}), now)
            offsets = {stream: tuple(offset for offset in items if offset) for stream, items in found.items()}
            resumed += sum(len(items) for items in offsets.values())
            again += sum(items.count(None) for items in found.values())
        plan = BatchPlan(pipeline.pipeline, replica, sequence, number, int(now.timestamp() * MICROS),
                         offsets=offsets, snapshot=True)  # fmt: skip
        _write(delta, plan, seen[replica, sequence])
    return JournalSummary({"/".join(key): number for key, number in numbers.items()}, resumed, again, timeline, old)


def _make_way(delta: Tables, folders: TableFolders, now: datetime, replace: bool) -> str | None:
    """Put a journal aside that is there; returns where it is then. One that holds nothing is written on."""
    log = read_log(delta.path("journal"))
    if log.version < 1 and not log.torn:
        return None
    if not replace:
        raise ConfigError(
            f"{delta.path('journal')}: the journal is there, and ends with version {log.version}",
            remedy="Nothing is to be done, unless it is older than the other tables, or damaged: then put it aside "
            "and start again with --replace",
        )
    delta.replaces("journal rebuild", now)
    return folders.put_aside("journal", now)


def _seen(facts: Facts, key: tuple[str, str]) -> CommittedTxns:
    """What the tables themselves hold of a sequence."""
    txns = [facts.txns(name, key) for name in facts.logs if name != "journal"]
    tables = {name: (log.table_id, facts.version(name)) for name, log in facts.logs.items()}
    return CommittedTxns({name: number for found in txns for name, number in found.items()}, tables).known()


def _resumed(
    pipeline: Pipeline, places: Mapping[str, list[LastRecord]], now: datetime
) -> dict[str, list[SourceOffset | None]]:
    """Where sources go on after these records, by stream; None of each that they do not find."""
    found: dict[str, list[SourceOffset | None]] = {}
    for item in pipeline.inputs:
        source, spec = open_source(item.source), pipeline.spec(item.name, int(now.timestamp() * MICROS))
        found[item.name] = [source.resume(last, spec) for last in places.get(item.name, ())]
    return found


def _places(pipeline: Pipeline, lake: Lake) -> Mapping[str, Mapping[str, list[LastRecord]]]:
    """The last good record of every partition, by replica and stream."""
    found: dict[str, dict[str, list[LastRecord]]] = {}
    for stream in (item.name for item in pipeline.inputs):
        last = F.max_by(F.struct("path", "length", "event_id"), F.col("offset")).alias("last")
        rows = (
            lake.read(stream)
            .groupBy("replica", "source_partition")
            .agg(last, F.max("offset").alias("offset"))
            .collect()
        )
        for row in rows:
            place = LastRecord(
                row["source_partition"],
                row["last"]["path"],
                row["offset"],
                row["last"]["length"],
                row["last"]["event_id"],
            )
            found.setdefault(row["replica"], {}).setdefault(stream, []).append(place)
    return found


def _write(delta: Tables, plan: BatchPlan, held: CommittedTxns) -> None:
    key: dict[str, Any] = {"replica": plan.replica, "sequence": plan.sequence, "batch": plan.number}
    key["at"] = plan.planned_at
    planned = {**key, "state": "planned", "snapshot": True, "plan": plan.to_json()}
    settled = {**key, "state": "settled", "snapshot": False, "plan": settled_json({}, held, plan.txn.app_id)}
    delta.append("journal", [planned, settled], Txn(f"{plan.txn.app_id}/planned", plan.number))
    delta.commit_txn_only("journal", Txn(f"{plan.txn.app_id}/settled", plan.number))


def _fence(lake: Lake) -> int:
    """Put those entries of the timeline in force again that landed rows and claims were placed by."""
    rows = sorted({(row["from_time"], row["shards"]) for row in lake.delta.read("shard_timeline").to_pylist()})
    held = [rows[0]]
    for at, (since, shards) in enumerate(rows[1:], 1):
        until = rows[at + 1][0] if at + 1 < len(rows) else None
        if since != EPOCH and _placed_by(lake, Timeline(tuple(held)), since, shards, until):
            lake.delta.commit_txn_only("journal", fence(since, shards))
            held.append((since, shards))
    return len(held)


def _placed_by(lake: Lake, before: Timeline, since: datetime, shards: int, until: datetime | None) -> bool:
    """Whether a row of the entry's time lies where the entry, and not the one before, puts it."""
    span = f"event_time >= {timestamp(since)}" + (f" AND event_time < {timestamp(until)}" if until else "")
    entry = Timeline(((since, shards),))
    differs = f"{span} AND shard = {entry.sql()} AND shard != {before.sql()}"
    return any(lake.read(name).where(differs).limit(1).collect() for name in ("foreign", "registry"))
