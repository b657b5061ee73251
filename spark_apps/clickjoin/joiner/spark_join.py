"""The joiner that works by Spark's operators: every foreign event of a batch gets exactly one status.

joined | filtered | unjoinable | pending | expired | repeat | broken (claimed here before, and not to be found now).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.batch_context import Context
from clickjoin.event_store.join_input import JoinInput
from clickjoin.event_store.lookup import look_up
from clickjoin.kernel.adapter import MISFITS, Adapter, ArrowAdapter, BothRecords
from clickjoin.model.errors import AdapterError, ConfigError, ServerLost, SourceMoved
from clickjoin.model.ids import EVENT_KEY
from clickjoin.spark.failures import translate
from clickjoin.spark.ship import ship_adapter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUT = "out_"  # before the names of the adapter's columns: those of the batch's own rows must stay apart
_NO_FAULT = (ServerLost, ConfigError, SourceMoved)  # whatever the adapter did
_PREPARED_IN = (*EVENT_KEY, "primary_id", "primary_time", "payload")


def adapt(ctx: Context, screened: DataFrame, work: JoinInput, floor: datetime | None = None) -> DataFrame:
    """Look up, and run the adapter on, the events whose `standing` is new or mine.

    Columns added: found, kept (by `prepare`), merged (BOOLEAN), and the adapter's own, each with OUT before its name.
    """
    return (_plain if is_plain(ctx.adapter) else _adapted)(ctx, screened, work, floor)


def is_plain(adapter: Adapter) -> bool:
    """Whether an adapter can neither drop nor double a row, so that its work need not be checked."""
    kind = type(adapter)
    same = kind.merge is BothRecords.merge and getattr(kind, "merge_table", None) is BothRecords.merge_table
    return kind.prepare is Adapter.prepare and same and kind.columns == BothRecords.columns


def _plain(ctx: Context, screened: DataFrame, work: JoinInput, floor: datetime | None) -> DataFrame:
    wanted = F.col("standing").isin("new", "mine")
    masked = screened.withColumn("wanted_id", F.col("primary_id")).withColumn(
        "primary_id", F.when(wanted, F.col("primary_id"))
    )
    looked = look_up(ctx, masked, work.named, floor=floor)
    looked = looked.withColumn("primary_id", F.col("wanted_id")).drop("wanted_id")
    looked = looked.withColumn("found", F.col("found") & wanted)
    return (
        looked.withColumn("merged", F.col("found"))
        .withColumn("kept", F.lit(True))
        .withColumn(f"{OUT}foreign", F.col("payload"))
        .withColumn(f"{OUT}primary", F.col("primary"))
    )


def _adapted(ctx: Context, screened: DataFrame, work: JoinInput, floor: datetime | None) -> DataFrame:
    """Run the adapter on new events alone, and compare what it gives with what it got."""
    ship_adapter(type(ctx.adapter))
    screened = screened.localCheckpoint(eager=False)
    new = screened.where(F.col("standing").isin("new", "mine"))
    prepared = _call(ctx, "prepare", new.select(*_PREPARED_IN), _PREPARED_IN[:4])
    if type(ctx.adapter).prepare is not Adapter.prepare:
        prepared = _checked(ctx, "prepare", prepared, new)
    looked = look_up(ctx, prepared, work.named, floor=floor).localCheckpoint(eager=False)
    matched = looked.where("found").drop("found")
    merged = _call(ctx, "merge", matched, (*EVENT_KEY, *ctx.adapter.columns))
    merged = _checked(ctx, "merge", merged.select(*EVENT_KEY, *_typed(ctx)), matched)
    kept = looked.select(
        *EVENT_KEY, "found", "emptied", F.col("primary_time").alias("found_time"), F.lit(True).alias("kept")
    )
    done = merged.withColumn("merged", F.lit(True))
    whole = screened.join(kept, list(EVENT_KEY), "left").join(done, list(EVENT_KEY), "left")
    whole = whole.withColumn("primary_time", F.coalesce("found_time", "primary_time")).drop("found_time")
    flags = {name: F.coalesce(F.col(name), F.lit(False)) for name in ("found", "emptied", "kept", "merged")}
    return whole.withColumns(flags)


def _typed(ctx: Context) -> list[Any]:
    own = [F.col(f"`{name}`").cast(kind).alias(f"{OUT}{name}") for name, kind in ctx.adapter.columns.items()]
    return own + ([F.col(MISFITS).alias(f"{OUT}{MISFITS}")] if _reporting(ctx) else [])


def _reporting(ctx: Context) -> list[str]:
    """Columns whose misfits are counted."""
    reports = isinstance(ctx.adapter, ArrowAdapter) and ctx.adapter.reports_misfits
    return list(ctx.adapter.columns) if reports else []


def _call(ctx: Context, method: str, rows: DataFrame, needed: tuple[str, ...]) -> DataFrame:
    name = f"adapter {ctx.pipeline.adapter}: {method}"
    try:
        given: DataFrame = getattr(ctx.adapter, method)(rows)
        columns = given.columns
    except Exception as error:
        if isinstance(translate(error), _NO_FAULT):
            raise
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
        doubled = held.groupBy(*EVENT_KEY).count().where("count > 1").limit(3).collect()
        invented = held.join(got, list(EVENT_KEY), "left_anti").select("event_id").limit(3).collect()
    except Exception as error:
        # A worker that was killed, or Spark that is gone, is no fault of the adapter: the batch is run again.
        if "SparkConnectGrpc" in type(error).__name__ or isinstance(
            translate(error), ServerLost | ConfigError | SourceMoved
        ):
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


def output(ctx: Context, rows: DataFrame) -> DataFrame:
    """Adapted rows as rows of `joined`, by this batch and now."""
    own = [F.col(f"`{OUT}{name}`").alias(name) for name in ctx.adapter.columns]
    by_batch = rows.withColumns(
        {
            "token": F.lit(ctx.plan.token),
            "replica": F.lit(ctx.plan.replica),
            "sequence": F.lit(ctx.plan.sequence),
            "batch": F.lit(ctx.plan.number).cast("bigint"),
            "published_at": F.current_timestamp(),
        }
    )
    by_batch = by_batch.withColumn("event_date", F.substring("bucket", 1, 10).cast("date"))  # a bucket lies in one date
    return by_batch.select(*ctx.lake.delta.table("joined").names, *own)
