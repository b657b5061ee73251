"""The output of a range made again by Spark, and that of events which are joined outside of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from clickjoin.engines.adapter_errors import adapter_errors
from clickjoin.engines.extents import extents
from clickjoin.engines.lookup import primary_extent
from clickjoin.engines.port import JoinInput, Rebuilt
from clickjoin.engines.spark.adapting import OUT
from clickjoin.engines.spark.changes import place
from clickjoin.engines.spark.outputs import output
from clickjoin.engines.spark.resolving import adapted
from clickjoin.model.ids import EVENT_KEY
from clickjoin.spark.rows import first_of_key, frame
from clickjoin.spark.views import named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engines.context import Context
    from clickjoin.engines.spark.lake import SparkLake
    from clickjoin.model.span import Span

_KEY = "t.event_id = s.event_id AND t.event_time = s.event_time AND t.bucket = s.bucket"


def rebuilt(lake: SparkLake, ctx: Context, span: Span) -> Rebuilt:
    """See Lake.rebuilt."""
    rows = _records(lake, ctx, span).localCheckpoint(eager=False)
    made = _answers(ctx, rows, F.when(F.col("payload").isNotNull(), "new").otherwise("gone"))
    with adapter_errors(ctx, "nothing was changed"):
        row = _counted(made)
    return Rebuilt(row, (_values(lake, ctx, made), place(lake, "joined", span.extent(ctx.bucket_seconds))))


def _counted(made: DataFrame) -> dict[str, int]:
    """How many ids of the output there are, and how many cannot be rebuilt, by reason."""
    row = made.agg(
        F.count(F.lit(1)).alias("rows"),
        F.expr("count_if(payload IS NULL)").alias("foreign"),
        F.expr("count_if(payload IS NOT NULL AND kept AND NOT found AND NOT merged)").alias("primary"),
        F.expr("count_if(payload IS NOT NULL AND NOT merged AND (found OR NOT kept))").alias("adapter"),
        F.expr("COALESCE(SUM(again), 0)").alias("doubled"),
    ).collect()[0]
    found: dict[str, int] = row.asDict()
    return found


def replace_output(lake: SparkLake, made: Rebuilt) -> bool:
    """See Lake.replace_output: a MERGE by id, which finds rows wherever they were moved meanwhile."""
    rows, near = made.rows
    keys = (*EVENT_KEY, "bucket")
    values = ", ".join(f"t.`{name}` = s.`{name}`" for name in rows.columns if name not in keys)
    with named(rows) as view:
        merge = f"MERGE INTO {{table}} t USING {view} s ON {_KEY} AND {near} WHEN MATCHED THEN UPDATE SET {values}"
        lake.commits.run("joined", merge)
    return True


def output_of(lake: SparkLake, ctx: Context, rows: pa.Table) -> pa.Table:
    """See Lake.output_of."""
    made = _answers(ctx, frame(lake.spark, rows), F.lit("new"))
    known = lake.delta.schema("joined")
    with adapter_errors(ctx, "nothing was changed"):
        found: Any = output(lake, ctx, made.where("merged")).toArrow()
    return found.cast(pa.schema([known.field(name) for name in found.column_names]))


def _answers(ctx: Context, rows: DataFrame, standing: Any) -> DataFrame:
    own, wanted = extents(rows, ctx.bucket_seconds)
    work = JoinInput(own, primary_extent(ctx, own, wanted))
    return adapted(ctx, rows.withColumn("standing", standing), work, None).localCheckpoint(eager=False)


def _records(lake: SparkLake, ctx: Context, span: Span) -> DataFrame:
    """Every id of the output in a range, with the record of it that landed first: payload null where it was collected.

    Columns: event_id, event_time, bucket, shard, primary_id, primary_time, payload, again (rows of it besides).
    """
    extent = span.extent(ctx.bucket_seconds)
    there = lake.read("joined").where(extent.sql())
    if ctx.pipeline.stream:
        there = there.selectExpr("*", "CAST(NULL AS STRING) primary_id", "CAST(NULL AS TIMESTAMP) primary_time")
    own = [F.first(name).alias(name) for name in ("bucket", "primary_id", "primary_time")]
    there = there.groupBy(*EVENT_KEY).agg(*own, (F.count(F.lit(1)) - 1).alias("again"))
    landed = lake.read("foreign").where(extent.sql())
    # With `match` the output has the id of what was picked, and the record the key that it was picked by.
    keys = ["primary_id"] if ctx.pipeline.match else []
    landed = first_of_key(landed, "landed_at", "replica", "source_partition", "offset").select(
        *EVENT_KEY, "payload", *keys
    )
    return there.drop(*keys).join(landed, list(EVENT_KEY), "left").withColumn("shard", F.lit(0))


def _values(lake: SparkLake, ctx: Context, made: DataFrame) -> DataFrame:
    table = lake.delta.table("joined")
    makes = {name: F.col(f"`{OUT}{name}`") for name in ctx.adapter.columns}
    # What an earlier adapter made and today's does not is no answer of today's adapter.
    stale = {
        name: F.lit(None) for name in lake.delta.columns("joined") if name not in table.names and name not in makes
    }
    named = ("primary_time", "primary_id") if ctx.pipeline.match else ("primary_time",)
    own = {name: F.col(name) for name in named if name in table.names}
    columns = own | makes | stale
    return made.select(*EVENT_KEY, "bucket", *(column.alias(name) for name, column in columns.items()))
