"""What becomes of a batch's events, as Spark plans over Delta reads: screened, looked up, adapted, each one status.

joined | filtered | unjoinable | pending | expired | repeat | broken (claimed here before, and not to be found now).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.engines.adapter_errors import adapter_errors
from clickjoin.engines.lookup import look_up
from clickjoin.engines.port import JoinInput, Outcome, Tally
from clickjoin.engines.spark.adapting import OUT, adapt, reporting
from clickjoin.kernel.adapter import MISFITS, needs_spark
from clickjoin.kernel.forgotten import EMPTIED, NO_ID
from clickjoin.model.extent import Extent
from clickjoin.model.ids import EVENT_KEY, moment
from clickjoin.model.shards import expired_sql
from clickjoin.spark.rows import first_of_key, frame

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

    from clickjoin.engines.context import Context
    from clickjoin.engines.spark.lake import SparkLake


@dataclass(frozen=True)
class Resolved:
    """A batch's events with column `status`, kept by Spark, and the shards they lie in."""

    events: DataFrame
    shards: frozenset[int]

    def of(self, *statuses: str) -> DataFrame:
        """Events of some statuses."""
        return self.events.where(F.col("status").isin(*statuses))


def resolve(lake: SparkLake, ctx: Context, work: JoinInput, *, fixed: bool) -> Outcome:
    """See Lake.resolve."""
    # Read once: their ids choose the claims, and the primary events, that are looked at.
    events = _events(lake, ctx, work).localCheckpoint(eager=False)
    # What a batch has claimed is there until it is settled, wherever the floor stands by then.
    rows = adapted(ctx, screened(lake, ctx, events, work.own), work, None if fixed else ctx.floor, events)
    # A local checkpoint, not a cache: the plan reads the registry, which the claim is about to change, and a cached
    # plan would be looked up, and computed, again.
    held = rows.withColumn("status", _claimed_status() if fixed else _first_status(ctx)).localCheckpoint(eager=False)
    with adapter_errors(ctx):
        return _outcome(ctx, held, fixed=fixed)


def _events(lake: SparkLake, ctx: Context, work: JoinInput) -> DataFrame:
    """The events as they landed, or as a retry takes them up, with their records."""
    if work.due is None:
        rows = lake.read_extent("foreign", work.own, ctx.plan.number).where(F.col("replica") == ctx.plan.replica)
        return rows.withColumns({"round": F.lit(0), "attempt": F.lit(0), "first_seen": F.col("landed_at")})
    kept = lake.read("pending").where((F.col("replica") == ctx.plan.replica) & F.col("payload").isNotNull())
    kept = first_of_key(kept.where(work.own.sql()), "round", "batch").select(*EVENT_KEY, "payload")
    due = frame(lake.spark, work.due)
    return due.join(kept, list(EVENT_KEY), "left").withColumns({"source_partition": F.lit(""), "offset": F.lit(0)})


def screened(lake: SparkLake, ctx: Context, events: DataFrame, own: Extent) -> DataFrame:
    """Keep the first record of each id and say where it stands: column `standing`, and `claimed` (its claim's outcome).

    standing: new | mine (claimed by this very batch, before a crash) | repeat (claimed by another) | expired |
    undecided (by a key and time: the primary stream has not passed its time).
    """
    by_id = ctx.pipeline.by_id
    key = ("event_id",) if by_id else EVENT_KEY
    claims = lake.read("registry") if by_id else lake.read("registry").where(own.sql())
    claims = claims.select(
        F.col("event_id").alias("c_id"), F.col("event_time").alias("c_time"), F.col("token").alias("c_token"),
        F.col("outcome").alias("claimed"),
    )  # fmt: skip
    same = F.col("c_id") == F.col("event_id")
    if not by_id:
        same &= F.col("c_time") == F.col("event_time")
    unique = first_of_key(events, "event_time", "source_partition", "offset", key=key)
    # Only claims of these ids are sorted and sent about: a registry has many more. `events` are kept by Spark.
    claims = claims.join(F.broadcast(events.select(F.col("event_id").alias("c_id")).distinct()), "c_id", "left_semi")
    seen = unique.join(claims, same, "left")
    standing = (
        F.when(F.col("c_token") == ctx.plan.token, "mine")
        .when(F.col("c_token").isNotNull(), "repeat")
        .when(F.expr(expired_sql(ctx.boundary)), "expired")
        .when(F.lit(ctx.pipeline.match is not None) & ~_is_over(ctx), "undecided")
        .otherwise("new")
    )
    return seen.withColumn("standing", standing).drop("c_id", "c_time", "c_token")


def adapted(
    ctx: Context, rows: DataFrame, work: JoinInput, floor: datetime | None, events: DataFrame | None = None
) -> DataFrame:
    """Look up the events whose `standing` is new or mine, and run the adapter on those that were found; see adapt.

    `events`: kept by Spark, and those of `rows` among them: it costs less to ask them which primary events are named.
    """
    named_by = None if needs_spark(ctx.adapter) else events  # such an adapter may name others
    return adapt(ctx, rows, lambda wanted: look_up(ctx, wanted, work.named, floor=floor, named_by=named_by))


def _is_over(ctx: Context) -> Any:
    """Whether an event waits no longer; see kernel.waiting.Tries.over."""
    over = _is_absent(ctx)
    if ctx.pipeline.match:
        over |= F.col("primary_id") == NO_ID
    if ctx.plan.table is None:
        return over
    often = F.col("attempt") + 1 >= ctx.pipeline.retry.max_attempts
    return over | (often & (F.col("first_seen") <= F.lit(ctx.waits_since)))


def _first_status(ctx: Context) -> Any:
    return (
        F.when(F.col("standing").isin("repeat", "expired"), F.col("standing"))
        .when(F.col("merged"), "joined")
        .when(F.col("found") | ~F.col("kept"), "filtered")
        .when(_is_over(ctx), "unjoinable")
        .otherwise("pending")
    )


def _is_absent(ctx: Context) -> Any:
    """Whether the stream of an event's primary has passed that one's time: it lies at the event's own at the latest."""
    if ctx.passed is None:
        return F.lit(False)
    return F.coalesce("primary_time", "event_time") < F.lit(moment(ctx.passed))


def _claimed_status() -> Any:
    """Of a batch whose claims are committed: they alone say what it may publish."""
    mine, forgotten = F.col("standing") == "mine", F.col("emptied") | (F.col("payload") == F.lit(EMPTIED))
    return (
        F.when(mine & ~F.col("merged") & F.coalesce(forgotten, F.lit(False)), "repeat")
        .when(mine & (F.col("claimed") == "joined") & ~F.col("merged"), "broken")
        .when(mine, F.col("claimed"))
        .when(F.col("standing").isin("repeat", "expired"), F.col("standing"))
        .otherwise("pending")
    )


def _outcome(ctx: Context, held: DataFrame, *, fixed: bool) -> Outcome:
    """Counts of a batch's events: all that comes to the driver."""
    micros, counted = F.unix_micros("event_time"), reporting(ctx)
    rows = (
        held.groupBy("status")
        .agg(
            F.count(F.lit(1)).alias("rows"), F.collect_set("bucket").alias("buckets"),
            F.collect_set("shard").alias("shards"), F.min(micros).alias("low"), F.max(micros).alias("high"),
            F.percentile_approx(micros, [0.5, 0.1, 0.01]).alias("times"),
            F.count(F.when(_is_absent(ctx), 1)).alias("absent"),
            F.count(F.when(F.col("found") | ~F.col("kept"), 1)).alias("dropped"),
            *(
                F.expr(f"count_if(array_contains({OUT}{MISFITS}, '{name}'))").alias(f"misfit_{name}")
                for name in counted
            ),
        )
        .collect()
    )  # fmt: skip
    by_status = {row["status"]: row for row in rows}
    tallies = {
        status: Tally(
            Extent(row["rows"], tuple(row["buckets"]), moment(row["low"]), moment(row["high"])),
            tuple(row["times"] or ()), row["absent"],
        )
        for status, row in by_status.items()
    }  # fmt: skip
    joined, broken = by_status.get("joined"), by_status.get("broken")
    misfits = {name: joined[f"misfit_{name}"] for name in counted if joined and joined[f"misfit_{name}"]}
    shards = frozenset(shard for row in rows for shard in row["shards"])
    absent = by_status["unjoinable"]["absent"] if "unjoinable" in by_status else 0
    return Outcome(tallies, Resolved(held, shards), fixed, broken["dropped"] if broken else 0, misfits, absent)
