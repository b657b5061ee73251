"""The join of one batch: every foreign event gets exactly one status.

joined | filtered | unjoinable | pending | expired | repeat | broken (claimed here before, and not to be found now).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.context import Context
from clickjoin.errors import AdapterError
from clickjoin.event_store.lookup import look_up
from clickjoin.events import moment
from clickjoin.joiner.adapter import Adapter, Merge
from clickjoin.lake.extent import Extent
from clickjoin.registry.claim import screen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLAIMED = ("joined", "filtered", "unjoinable")
OUT = "out_"  # before the names of the adapter's columns: those of the batch's own rows must stay apart
_KEY = ("event_id", "event_time")
MOST_ROWS = 50_000  # that one process writes
_PREPARED_IN = (*_KEY, "primary_id", "primary_time", "payload")


@dataclass(frozen=True)
class Work:
    """Foreign events to join: rows as table `foreign`, with round, attempt and first_seen; and where they lie.

    `events` makes the plan that reads them: a batch that Arrow resolves needs none.
    """

    events: Callable[[], DataFrame]
    own: Extent
    named: Extent


@dataclass(frozen=True)
class Tally:
    """Rows of one status: where they lie, their shards, event times (microseconds) that 50, 90, 99 in 100 exceed.

    `size`: bytes of their records and of what the adapter has made of them.
    """

    extent: Extent
    shards: frozenset[int]
    times: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Classified:
    """All distinct events of a batch with column `status`, held in Spark's memory, and a tally by status.

    `little`: what they hold is little enough for one process (`batch.local`).
    """

    rows: DataFrame
    tallies: dict[str, Tally]
    little: bool

    def count(self, *statuses: str) -> int:
        """Number of events with one of these statuses."""
        return sum(self.tallies[status].extent.rows for status in statuses if status in self.tallies)


def classify(ctx: Context, work: Work, *, fixed: bool) -> Classified:
    """Screen, look up and adapt a batch. `fixed`: its claims are committed, so they alone say what it may publish.

    Errors: AdapterError, before anything is claimed.
    """
    screened = screen(ctx, work.events(), work.own)
    # What a batch has claimed is there until it is settled, wherever the floor stands by then.
    whole = adapt(ctx, screened, work, None if fixed else ctx.floor)
    status = _fixed_status() if fixed else _first_status(ctx)
    # A local checkpoint, not a cache: the plan reads the registry, which the claim is about to change, and a cached
    # plan would be looked up, and computed, again.
    held = whole.withColumn("status", status).localCheckpoint(eager=False)
    tallies = _tally(held, _texts(ctx))
    rows, size = sum(tally.extent.rows for tally in tallies.values()), sum(tally.size for tally in tallies.values())
    return Classified(held, tallies, rows <= MOST_ROWS and size <= ctx.pipeline.batch.local)


def adapt(ctx: Context, screened: DataFrame, work: Work, floor: datetime | None = None) -> DataFrame:
    """Look up, and run the adapter on, the events whose `standing` is new or mine.

    Columns added: found, kept (by `prepare`), merged (BOOLEAN), and the adapter's own, each with OUT before its name.
    """
    return (_plain if is_plain(ctx.adapter) else _adapted)(ctx, screened, work, floor)


def is_plain(adapter: Adapter) -> bool:
    """Whether an adapter can neither drop nor double a row, so that its work need not be checked."""
    kind = type(adapter)
    same = kind.merge is Merge.merge and getattr(kind, "merge_table", None) is Merge.merge_table
    return kind.prepare is Adapter.prepare and same and kind.columns == Merge.columns


def _plain(ctx: Context, screened: DataFrame, work: Work, floor: datetime | None) -> DataFrame:
    wanted = F.col("standing").isin("new", "mine")
    masked = screened.withColumn("wanted_id", F.col("primary_id")).withColumn(
        "primary_id", F.when(wanted, F.col("primary_id"))
    )
    looked = look_up(ctx, masked, work.named, floor=floor)
    looked = looked.withColumn("primary_id", F.col("wanted_id")).drop("wanted_id")
    return (
        looked.withColumn("merged", F.col("found"))
        .withColumn("kept", F.lit(True))
        .withColumn(f"{OUT}foreign", F.col("payload"))
        .withColumn(f"{OUT}primary", F.col("primary"))
    )


def _adapted(ctx: Context, screened: DataFrame, work: Work, floor: datetime | None) -> DataFrame:
    """Run the adapter on new events alone, and hold what it gives against what it got."""
    screened = screened.localCheckpoint(eager=False)
    new = screened.where(F.col("standing").isin("new", "mine"))
    prepared = _call(ctx, "prepare", new.select(*_PREPARED_IN), _PREPARED_IN[:4])
    if type(ctx.adapter).prepare is not Adapter.prepare:
        prepared = _checked(ctx, "prepare", prepared, new)
    looked = look_up(ctx, prepared, work.named, floor=floor).localCheckpoint(eager=False)
    matched = looked.where("found").drop("found")
    merged = _call(ctx, "merge", matched, (*_KEY, *ctx.adapter.columns))
    merged = _checked(ctx, "merge", merged.select(*_KEY, *_typed(ctx)), matched)
    kept = looked.select(*_KEY, "found", F.col("primary_time").alias("found_time"), F.lit(True).alias("kept"))
    done = merged.withColumn("merged", F.lit(True))
    whole = screened.join(kept, list(_KEY), "left").join(done, list(_KEY), "left")
    whole = whole.withColumn("primary_time", F.coalesce("found_time", "primary_time")).drop("found_time")
    flags = {name: F.coalesce(F.col(name), F.lit(False)) for name in ("found", "kept", "merged")}
    return whole.withColumns(flags)


def _typed(ctx: Context) -> list[Any]:
    return [F.col(f"`{name}`").cast(kind).alias(f"{OUT}{name}") for name, kind in ctx.adapter.columns.items()]


def _call(ctx: Context, method: str, rows: DataFrame, needed: tuple[str, ...]) -> DataFrame:
    name = f"adapter {ctx.pipeline.adapter}: {method}"
    try:
        given: DataFrame = getattr(ctx.adapter, method)(rows)
        columns = given.columns
    except Exception as error:
        raise AdapterError(
            f"{name} raised {type(error).__name__}: {error}",
            remedy="Fix the adapter; nothing of this batch was claimed",
        ) from error
    missing = [column for column in needed if column not in columns]
    if missing:
        raise AdapterError(f"{name} dropped {', '.join(missing)}", remedy="Keep or make these columns")
    return given


def _checked(ctx: Context, method: str, given: DataFrame, got: DataFrame) -> DataFrame:
    """What the adapter gave, computed once: one row at most for each event, and no event that was not there."""
    name = f"adapter {ctx.pipeline.adapter}: {method}"
    try:
        held = given.localCheckpoint(eager=False)
        doubled = held.groupBy(*_KEY).count().where("count > 1").limit(3).collect()
        invented = held.join(got, list(_KEY), "left_anti").select("event_id").limit(3).collect()
    except Exception as error:
        if "SparkConnectGrpc" in type(error).__name__:
            raise
        raise AdapterError(
            f"{name} raised {type(error).__name__} on some row: {str(error)[:500]}",
            remedy="Fix the adapter; nothing of this batch was claimed",
        ) from error
    if doubled:
        raise AdapterError(
            f"{name} made two rows of one event, such as {doubled[0]['event_id']}",
            remedy="Give one row at most for each event_id",
        )
    if invented:
        raise AdapterError(
            f"{name} gave an event that was not there: {invented[0]['event_id']}",
            remedy="Keep event_id and event_time as they are",
        )
    return held


def _first_status(ctx: Context) -> Any:
    retry = ctx.pipeline.retry
    oldest = ctx.plan.planned_at - timedelta(seconds=retry.max_age)
    given_up = (F.col("attempt") + 1 >= retry.max_attempts) & (F.col("first_seen") <= F.lit(oldest))
    if ctx.plan.sequence == "join":
        given_up = F.lit(False)
    return (
        F.when(F.col("standing").isin("repeat", "expired"), F.col("standing"))
        .when(F.col("merged"), "joined")
        .when(F.col("found") | ~F.col("kept"), "filtered")
        .when(given_up, "unjoinable")
        .otherwise("pending")
    )


def _fixed_status() -> Any:
    return (
        F.when((F.col("standing") == "mine") & (F.col("claimed") == "joined") & ~F.col("merged"), "broken")
        .when(F.col("standing") == "mine", F.col("claimed"))
        .when(F.col("standing").isin("repeat", "expired"), F.col("standing"))
        .otherwise("pending")
    )


def _texts(ctx: Context) -> list[str]:
    """Columns that can be long."""
    long = [name for name, kind in ctx.adapter.columns.items() if kind.upper() in ("STRING", "BINARY")]
    return ["payload", *(f"`{OUT}{name}`" for name in long)]


def _tally(held: DataFrame, texts: list[str]) -> dict[str, Tally]:
    size = " + ".join(f"COALESCE(OCTET_LENGTH({name}), 0)" for name in texts)
    micros = F.unix_micros("event_time")
    rows = (
        held.groupBy("status")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.collect_set("bucket").alias("buckets"),
            F.collect_set("shard").alias("shards"),
            F.min(micros).alias("low"),
            F.max(micros).alias("high"),
            F.percentile_approx(micros, [0.5, 0.1, 0.01]).alias("times"),
            F.sum(F.expr(size)).alias("size"),
        )
        .collect()
    )
    return {
        row["status"]: Tally(
            Extent(row["rows"], tuple(row["buckets"]), moment(row["low"]), moment(row["high"])),
            frozenset(row["shards"]),
            tuple(row["times"] or ()),
            row["size"],
        )
        for row in rows
    }
