"""The sums: every input record and every accepted event, each in exactly one place."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.lake.maintenance import newest
from clickjoin.model.extent import timestamp
from clickjoin.model.ids import EPOCH, EVENT_KEY
from clickjoin.registry.boundary import load_boundary
from clickjoin.report import local_accounts
from clickjoin.retry.pending import waiting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.lake.spark_reader import SparkReader

OUTCOMES = ("joined", "filtered", "unjoinable", "forgotten", "expired", "pending")
_OF = {"forgotten": "stream = 'foreign' AND event_id IS NOT NULL"}


@dataclass(frozen=True)
class Accounts:
    """Counts over all of a pipeline's tables. Records are lines of input; events are distinct ids.

    foreign_records = accepted + repeats + foreign_quarantined, and accepted = joined + filtered + unjoinable +
    forgotten + expired + pending, hold unless `lost` or `doubled` is above zero. `doubled` are ids of two output rows,
    or of one and no record; `collected` such of one row whose record GC may have dropped, by `retention.foreign`.
    """

    primary_records: int
    primary_events: int
    primary_repeats: int
    primary_quarantined: int
    foreign_records: int
    accepted: int
    repeats: int
    foreign_quarantined: int
    joined: int
    filtered: int
    unjoinable: int
    forgotten: int
    expired: int
    pending: int
    lost: int
    doubled: int
    collected: int

    @property
    def agree(self) -> bool:
        """Whether nothing is lost, nothing doubled, and the sums are equal."""
        outcomes = sum(getattr(self, name) for name in OUTCOMES)
        return not self.lost and not self.doubled and outcomes == self.accepted

    def to_dict(self) -> dict[str, int | bool]:
        """All counts, and whether they agree."""
        return {**asdict(self), "agree": self.agree}


def kept_since(pipeline: Pipeline, lake: SparkReader, now: datetime) -> datetime:
    """The event time from which on no record can have been dropped from `foreign` by GC (see registry.horizon)."""
    ahead = timedelta(seconds=pipeline.limits.max_skew)
    return min(now, newest(lake.delta, "registry") or now) - timedelta(seconds=pipeline.kept("foreign")) + ahead


def account(lake: SparkReader, replicas: list[str], since: datetime, *, by_id: bool = False) -> Accounts:
    """Count everything, id by id, reading ids only: a small lake in this process, a large one by two Spark jobs.

    `since`: see kept_since. `by_id`: an id alone names an event, whatever its time; once its claim was collected, it
    may be there again.
    """
    if local_accounts.is_small(lake.delta, ("primary", "foreign", *OUTCOMES, "quarantine")):
        bad, (ids, rows) = local_accounts.quarantined(lake.delta), local_accounts.primary_events(lake.delta)
        counts = local_accounts.foreign_events(lake.delta, replicas, OUTCOMES, since, by_id=by_id)
    else:
        bad, (ids, rows) = _quarantined(lake), _primary_events(lake)
        counts = _foreign_events(lake, replicas, since, by_id)
    records = counts.pop("records")
    return Accounts(
        primary_records=rows + bad.get("primary", 0),
        primary_events=ids,
        primary_repeats=rows - ids,
        primary_quarantined=bad.get("primary", 0),
        foreign_records=records + bad.get("foreign", 0),
        repeats=records - counts["accepted"],
        foreign_quarantined=bad.get("foreign", 0),
        **counts,
    )


def _quarantined(lake: SparkReader) -> dict[str, int]:
    whole = lake.read("quarantine").where("COALESCE(part, 0) = 0")
    return {row["stream"]: row["n"] for row in whole.groupBy("stream").agg(F.count("*").alias("n")).collect()}


def _primary_events(lake: SparkReader) -> tuple[int, int]:
    ids = lake.read("primary").groupBy(*EVENT_KEY).count()
    row = ids.agg(F.count("*").alias("ids"), F.sum("count").alias("n")).collect()[0]
    return row["ids"], row["n"] or 0


def _foreign_events(lake: SparkReader, replicas: list[str], since: datetime, by_id: bool) -> dict[str, int]:
    kept = f"event_time >= {timestamp(since)}"
    row = (
        _events(lake, replicas, by_id)
        .agg(
            F.count_if("landed").alias("accepted"),
            F.coalesce(F.sum("records"), F.lit(0)).alias("records"),
            *[F.count_if(F.expr(f"landed AND outcome = '{name}'")).alias(name) for name in OUTCOMES],
            F.count_if(F.expr("landed AND outcome IS NULL")).alias("lost"),
            F.count_if(F.expr(f"outputs > 1 OR (outputs > 0 AND NOT landed AND {kept})")).alias("doubled"),
            F.count_if(F.expr(f"outputs = 1 AND NOT landed AND NOT ({kept})")).alias("collected"),
        )
        .collect()[0]
    )
    return dict(row.asDict())


def _events(lake: SparkReader, replicas: list[str], by_id: bool) -> DataFrame:
    """One row an id: its time, landed, records, outputs (in joined), outcome (the first of OUTCOMES that holds)."""
    parts = [lake.read("foreign").select(*EVENT_KEY, F.lit("foreign").alias("place"))]
    parts += [
        lake.read(name).where(_OF.get(name, "TRUE")).select(*EVENT_KEY, F.lit(name).alias("place"))
        for name in OUTCOMES[:-1]
    ]
    parts += [waiting(lake, replica).select(*EVENT_KEY, F.lit("pending").alias("place")) for replica in replicas]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionAll(part)
    oldest = max(load_boundary(lake.delta).values(), default=EPOCH)
    again = f"place = 'joined' AND event_time >= {timestamp(oldest)}" if by_id else "place = 'joined'"
    key, named = (["event_id"], [F.max("event_time").alias("event_time")]) if by_id else (list(EVENT_KEY), [])
    ids = whole.groupBy(*key).agg(
        *named,
        F.count_if(F.expr("place = 'foreign'")).alias("records"),
        F.count_if(F.expr(again)).alias("outputs"),
        *[F.bool_or(F.expr(f"place = '{name}'")).alias(name) for name in OUTCOMES],
    )
    outcome = F.coalesce(*[F.when(F.col(name), F.lit(name)) for name in OUTCOMES])
    return ids.select(
        "event_time", "records", "outputs", (F.col("records") > 0).alias("landed"), outcome.alias("outcome")
    )
