"""Adapters in Spark plans: those of Arrow tables in tasks, those of DataFrames as they are, either checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.kernel.adapt_task import answers
from clickjoin.kernel.adapter import ALL_TOUCHES, MISFITS, Adapter, ArrowAdapter, is_users, made_of, needs_spark
from clickjoin.kernel.handshake import checked
from clickjoin.model.errors import AdapterError, ConfigError, ServerLost, SourceMoved
from clickjoin.model.ids import EVENT_KEY
from clickjoin.spark.failures import translate
from clickjoin.spark.ship import ship_adapter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engines.context import Context

OUT = "out_"  # before the names of the adapter's columns: those of the batch's own rows must stay apart
_NO_FAULT = (ServerLost, ConfigError, SourceMoved)  # whatever the adapter did
_PREPARED_IN = (*EVENT_KEY, "primary_id", "primary_time", "payload")
LookUp = Callable[["DataFrame"], "DataFrame"]


def reporting(ctx: Context) -> list[str]:
    """Columns of the output whose misfits are counted."""
    reports = isinstance(ctx.adapter, ArrowAdapter) and ctx.adapter.reports_misfits
    return list(ctx.adapter.columns) if reports else []


def adapt(ctx: Context, rows: DataFrame, look: LookUp) -> DataFrame:
    """Rows with what the adapter makes of those that are found. Errors, once it is computed: those of adapter_errors.

    Columns in: those of events, and standing. Columns added: found, emptied, kept, merged, and the adapter's own.
    """
    ship_adapter(type(ctx.adapter))
    return (_by_frames if needs_spark(ctx.adapter) else _by_tables)(ctx, rows, look)


def _by_tables(ctx: Context, rows: DataFrame, look: LookUp) -> DataFrame:
    """Have the tasks that have looked the records up call the adapter, which no plan computes twice."""
    wanted = F.col("standing").isin("new", "mine")
    masked = rows.withColumns({"wanted_id": F.col("primary_id"), "primary_id": F.when(wanted, F.col("primary_id"))})
    looked = look(masked).withColumn("primary_id", F.coalesce("primary_id", "wanted_id")).drop("wanted_id")
    looked = looked.withColumns({"found": F.col("found") & wanted, "emptied": F.col("emptied") & wanted})
    own = {f"{OUT}{name}": kind for name, kind in ctx.adapter.columns.items()}
    own |= {f"{OUT}{MISFITS}": "ARRAY<STRING>"} if reporting(ctx) else {}
    ddl = ", ".join([
        *(f"`{field.name}` {field.dataType.simpleString()}" for field in looked.schema.fields), "merged BOOLEAN",
        *(f"`{name}` {kind}" for name, kind in own.items()),
    ])  # fmt: skip
    adapter: Any = ctx.adapter
    made = made_of(adapter.columns, misfits=bool(reporting(ctx)))
    found = looked.mapInArrow(checked(answers(adapter, made, OUT), fresh=is_users(adapter)), ddl)
    return found.drop(*ALL_TOUCHES.names).withColumn("kept", F.lit(True))  # they are part of the adapter's own


def _by_frames(ctx: Context, rows: DataFrame, look: LookUp) -> DataFrame:
    """Run the adapter on new events alone, and compare what it gives with what it got."""
    rows = rows.localCheckpoint(eager=False)
    new = rows.where(F.col("standing").isin("new", "mine"))
    prepared = _call(ctx, "prepare", new.select(*_PREPARED_IN), _PREPARED_IN[:4])
    if type(ctx.adapter).prepare is not Adapter.prepare:
        prepared = _checked(ctx, "prepare", prepared, new)
    looked = look(prepared).localCheckpoint(eager=False)
    matched = looked.where("found").drop("found")
    merged = _call(ctx, "merge", matched, (*EVENT_KEY, *ctx.adapter.columns))
    own = [F.col(f"`{name}`").cast(kind).alias(f"{OUT}{name}") for name, kind in ctx.adapter.columns.items()]
    merged = _checked(ctx, "merge", merged.select(*EVENT_KEY, *own), matched)
    named = "primary_id" if ctx.pipeline.match else "NULL"
    kept = looked.selectExpr(
        *EVENT_KEY, "found", "emptied", "primary_time found_time", f"{named} found_id", "TRUE kept"
    )
    done = merged.withColumn("merged", F.lit(True))
    whole = rows.join(kept, list(EVENT_KEY), "left").join(done, list(EVENT_KEY), "left")
    taken = {f"primary_{what}": F.coalesce(f"found_{what}", f"primary_{what}") for what in ("time", "id")}
    whole = whole.withColumns(taken).drop("found_time", "found_id")
    flags = {name: F.coalesce(F.col(name), F.lit(False)) for name in ("found", "emptied", "kept", "merged")}
    return whole.withColumns(flags)


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
        if "SparkConnectGrpc" in type(error).__name__ or isinstance(translate(error), _NO_FAULT):
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
