"""Rebuilding a lost or damaged registry from the outputs, within the retention: what was published stays claimed.

Built beside, with every settled batch fixed in it, and put in place by one rename: no join ever sees half of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.agreement.mark_repaired import account
from clickjoin.dispatcher.journal import Journal, sequences
from clickjoin.forgotten.known import is_any
from clickjoin.lake.folders import TableFolders, moving_tables
from clickjoin.lake.log_entries import read_log
from clickjoin.lake.restored_log import UNKNOWN, go_on_after
from clickjoin.model.errors import BatchError, ConfigError, LakeError
from clickjoin.model.extent import timestamp
from clickjoin.model.ids import EVENT_KEY, bucket_at, bucket_start, claims_order
from clickjoin.model.shards import Timeline
from clickjoin.model.txn import Txn
from clickjoin.registry.boundary import advance, load_boundary
from clickjoin.registry.shards import fenced, fixed, load_timeline
from clickjoin.schemas import REGISTRY
from clickjoin.spark.rows import first_of_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


_BESIDE = "registry.rebuilding"
_OUTPUTS = ("joined", "filtered", "unjoinable")


@dataclass(frozen=True)
class RegistrySummary:
    """Claims written, by outcome; the event time that they reach back to; where the old registry was put."""

    claims: dict[str, int]
    since: datetime | None
    old: str | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self) | {"since": self.since.isoformat() if self.since else None}


def rebuild(pipeline: Pipeline, lake: Lake, now: datetime, *, replace: bool = False) -> RegistrySummary:
    """Rebuild the registry from `joined`, `filtered` and `unjoinable`. No join may run meanwhile.

    Events older than what it reaches back to are expired from then on. Errors: ConfigError where a registry is there
    and `replace` was not asked for, BatchError where something was joined meanwhile, LakeError of whole_timeline.
    """
    delta = lake.delta
    there = delta.exists("registry")
    if there and not replace:
        raise ConfigError(
            f"{delta.path('registry')}: is there",
            remedy="Fix single claims with `clickjoin verify --repair`, or put all of it aside with --replace",
        )
    with moving_tables(delta, "another rebuild") as folders:
        return _rebuild(pipeline, lake, folders, now, there=there)


def _rebuild(pipeline: Pipeline, lake: Lake, folders: TableFolders, now: datetime, *, there: bool) -> RegistrySummary:
    delta = lake.delta
    seen = {name: delta.version(name) for name in (*_OUTPUTS, "pending", "journal")}
    since = _since(pipeline, delta, now)
    timeline = whole_timeline(pipeline, lake, now)
    kept_from = since - timedelta(seconds=pipeline.repeats) if since else None
    claims = _claims(pipeline, lake, timeline, kept_from)
    folders.remove(_BESIDE)
    lake.create_filled(REGISTRY, claims, _BESIDE, order=claims_order(by_id=pipeline.by_id))
    for txn in _fixed(pipeline, delta):
        delta.commit_txn_only(_BESIDE, txn)
    if since is not None:
        advance(delta, timeline.most, since, now)
    old = _put_in_place(delta, folders, now, seen, there=there)
    # Claims were placed, and reach back, as these say now.
    account(delta, pipeline.pipeline, ("registry_boundary", "shard_timeline"))
    counts = lake.read("registry").groupBy("outcome").count().collect()
    return RegistrySummary({row["outcome"]: row["count"] for row in counts}, since, old)


def _put_in_place(
    delta: Tables, folders: TableFolders, now: datetime, seen: Mapping[str, int], *, there: bool
) -> str | None:
    """Put the new registry in the place of the old one, and return where that is then.

    A process that sleeps meanwhile holds a handle of the old registry: it is refused (see Tables.replaces), and
    what it was about to commit is a version that the new one has already (see lake/restored_log.py).
    """
    delta.replaces("registry rebuild", now)
    old = folders.put_aside("registry", now) if there else None
    if moved := [name for name, version in seen.items() if delta.version(name) != version]:
        if old:
            folders.rename(Path(old).name, "registry")
        raise BatchError(
            f"{delta.path(moved[0])}: was committed to while the registry was rebuilt; the registry is as it was",
            remedy="Stop every run, drain and gc of the pipeline, pause its DAGs in Airflow, and rebuild it again",
        )
    newest = folders.newest_aside("registry")  # one that was killed may have put it aside
    go_on_after(delta, _BESIDE, newest if old else max(newest, delta.version(_BESIDE) + UNKNOWN), now)
    folders.rename(_BESIDE, "registry")
    return old


def _since(pipeline: Pipeline, delta: Tables, now: datetime) -> datetime | None:
    """The start of the oldest bucket that the new registry answers for."""
    files = delta.files("joined")
    times = files["max.event_time"].to_pylist() if files.num_rows else []
    newest = max((time for time in times if time), default=None)
    boundary = load_boundary(delta)
    if newest is None:
        return max(boundary.values(), default=None)
    oldest = min(now, newest) - timedelta(seconds=pipeline.registry.retention)
    return max([bucket_start(bucket_at(oldest, pipeline.registry.bucket)), *boundary.values()])


def _claims(pipeline: Pipeline, lake: Lake, timeline: Timeline, since: datetime | None) -> DataFrame:
    parts = [
        lake.read(name)
        .where("TRUE" if since is None else f"event_time >= {timestamp(since)}")
        .where(
            "TRUE" if since is None or name != "joined" else f"bucket >= '{bucket_at(since, pipeline.registry.bucket)}'"
        )
        .select("event_id", "event_time", "bucket", "token", F.lit(name).alias("outcome"), F.lit(rank).alias("rank"))
        for rank, name in enumerate(_OUTPUTS)
    ]
    whole = parts[0].unionAll(parts[1]).unionAll(parts[2])
    if is_any(lake.delta):
        whole = whole.unionAll(_forgotten(pipeline, lake, since))
    if pipeline.by_id:  # after its claim was collected an id may have been published again
        unique = first_of_key(whole, F.desc("event_time"), "rank", "token", key=("event_id",))
    else:
        unique = first_of_key(whole, "rank", "token")
    return unique.withColumn("shard", F.expr(timeline.sql())).select(*REGISTRY.names)


def _forgotten(pipeline: Pipeline, lake: Lake, since: datetime | None) -> DataFrame:
    """Claims of events that were forgotten: no output has a row of them, and none may get one."""
    rows = lake.read("forgotten").where("stream = 'foreign' AND event_id IS NOT NULL").dropDuplicates(list(EVENT_KEY))
    rows = rows.where("TRUE" if since is None else f"event_time >= {timestamp(since)}")
    token = F.lit(f"{pipeline.pipeline}/forget")
    return rows.select(
        *EVENT_KEY, "bucket", token.alias("token"), F.lit("forgotten").alias("outcome"), F.lit(9).alias("rank")
    )


def _fixed(pipeline: Pipeline, delta: Tables) -> list[Txn]:
    """Of each sequence the newest batch that must claim nothing more: settled, or with some output written already."""
    found = []
    for replica, sequence in sequences(delta):
        journal = Journal(delta, pipeline.pipeline, replica, sequence)
        app = f"{pipeline.pipeline}/{replica}/{sequence}"
        # A redrive writes to `pending` once the claims are gone.
        written = max(
            delta.latest_txn_version(name, app) for name in (*_OUTPUTS, *(("pending",) * (sequence == "redrive")))
        )
        last = max(journal.settled(), written)
        if last > 0:
            found.append(Txn(app, last))
    return found
