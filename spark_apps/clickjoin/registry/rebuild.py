"""Rebuilding a lost or damaged registry from the outputs, within the retention: what was published stays claimed.

Built beside, with every settled batch fixed in it, and put in place by one rename: no join ever sees half of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from clickjoin.agreement.account import account
from clickjoin.dispatcher.journal import Journal, sequences
from clickjoin.errors import BatchError, ConfigError
from clickjoin.events import bucket_at, bucket_start
from clickjoin.lake import Txn
from clickjoin.lake.extent import timestamp
from clickjoin.lake.folders import put_aside, remove, rename
from clickjoin.lake.relog import go_on_after
from clickjoin.registry.boundary import advance, load_boundary
from clickjoin.registry.shards import Timeline, load_timeline
from clickjoin.tables import REGISTRY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.lake import Lake, SmallTables

_BESIDE = "registry.rebuilding"
_OUTPUTS = ("joined", "filtered", "unjoinable")


@dataclass(frozen=True)
class Rebuilt:
    """Claims written, by outcome; the event time that they reach back to; where the old registry was put."""

    claims: dict[str, int]
    since: datetime | None
    old: str | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self) | {"since": self.since.isoformat() if self.since else None}


def rebuild(pipeline: Pipeline, lake: Lake, now: datetime, *, replace: bool = False) -> Rebuilt:
    """Rebuild the registry from `joined`, `filtered` and `unjoinable`. No join may run meanwhile.

    Events older than what it reaches back to are expired from then on. Errors: ConfigError where a registry is there
    and `replace` was not asked for, BatchError where something was joined meanwhile.
    """
    small = lake.small
    there = small.exists("registry")
    if there and not replace:
        raise ConfigError(
            f"{small.path('registry')}: is there",
            remedy="Fix single claims with `clickjoin verify --repair`, or put all of it aside with --replace",
        )
    seen = {name: small.version(name) for name in (*_OUTPUTS, "pending", "batches")}
    since = _since(pipeline, small, now)
    claims = _claims(pipeline, lake, load_timeline(small), since)
    remove(small, _BESIDE)
    lake.create_filled(REGISTRY, claims, _BESIDE)
    for txn in _fixed(pipeline, small):
        small.fix(_BESIDE, txn)
    if since is not None:
        advance(small, load_timeline(small).most, since, now)
    old = _put_in_place(small, now, seen, there=there)
    account(small, pipeline.pipeline, ("boundary", "timeline"))  # claims were placed, and reach back, as these say now
    counts = lake.read("registry").groupBy("outcome").count().collect()
    return Rebuilt({row["outcome"]: row["count"] for row in counts}, since, old)


def _put_in_place(small: SmallTables, now: datetime, seen: Mapping[str, int], *, there: bool) -> str | None:
    """Put the new registry in the place of the old one, and return where that is then.

    A process that sleeps meanwhile holds a handle of the old registry: it is refused (see SmallTables.replaces), and
    what it was about to commit is a version that the new one has already (see lake/relog.py).
    """
    small.replaces("registry rebuild", now)
    old = put_aside(small, "registry", now) if there else None
    if moved := [name for name, version in seen.items() if small.version(name) != version]:
        if old:
            rename(small, Path(old).name, "registry")
        raise BatchError(
            f"{small.path(moved[0])}: was committed to while the registry was rebuilt; the registry is as it was",
            remedy="Stop every run, drain and gc of the pipeline, pause its DAGs in Airflow, and rebuild it again",
        )
    go_on_after(small, _BESIDE, old, now)
    rename(small, _BESIDE, "registry")
    return old


def _since(pipeline: Pipeline, small: SmallTables, now: datetime) -> datetime | None:
    """The start of the oldest bucket that the new registry answers for."""
    files = small.files("joined")
    times = files["max.event_time"].to_pylist() if files.num_rows else []
    newest = max((time for time in times if time), default=None)
    boundary = load_boundary(small)
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
    first = Window.partitionBy("event_id", "event_time").orderBy("rank", "token")
    return (
        whole.withColumn("nth", F.row_number().over(first))
        .where("nth = 1")
        .withColumn("shard", F.expr(timeline.sql()))
        .select(*REGISTRY.names)
    )


def _fixed(pipeline: Pipeline, small: SmallTables) -> list[Txn]:
    """Of each sequence the newest batch that must claim nothing more: settled, or with some output written already."""
    found = []
    for replica, sequence in sequences(small):
        journal = Journal(small, pipeline.pipeline, replica, sequence)
        app = f"{pipeline.pipeline}/{replica}/{sequence}"
        # A redrive writes to `pending` once the claims are gone.
        written = max(small.settled_txn(name, app) for name in (*_OUTPUTS, *(("pending",) * (sequence == "redrive"))))
        last = max(journal.settled(), written)
        if last > 0:
            found.append(Txn(app, last))
    return found
