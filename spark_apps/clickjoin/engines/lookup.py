"""Look-up: the primary event of each foreign event, reading only the buckets and times that the batch names."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.engines.context import Context
from clickjoin.engines.touches import pick
from clickjoin.kernel.forgotten import EMPTIED
from clickjoin.model.extent import Extent, spanning
from clickjoin.model.ids import COPIES_WITHIN, EVENT_KEY, MICROS
from clickjoin.spark.rows import first_of_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def primary_extent(ctx: Context, own: Extent, named: Extent) -> Extent:
    """Where the primary events of some foreign events can lie: the times they name, or a range before their own."""
    around = ctx.pipeline.around
    if around is None:
        return named
    if not own.rows or own.low is None or own.high is None:
        return Extent(0)
    back = around.back + (COPIES_WITHIN if around.pick else 0)
    low, high = own.low - timedelta(microseconds=back), own.high + timedelta(microseconds=around.ahead)
    return spanning(own.rows, low, high, ctx.bucket_seconds)


def look_up(
    ctx: Context, wanted: DataFrame, extent: Extent, version: int | None = None, floor: datetime | None = None,
    named_by: DataFrame | None = None,
) -> DataFrame:  # fmt: skip
    """Add `found` (BOOLEAN) and `primary` (record as JSON text), and the found event's `primary_time`, to each row.

    With `match` also its `primary_id`. `emptied` (BOOLEAN): the primary event is there, and its record was forgotten:
    one such is not found.

    A primary event that arrived twice counts once: the first that landed. Of several of one id within the lookback the
    latest counts. `version`: of table `primary`; else as of
    now. `floor`: primary events from before it are left alone (registry.boundary). `named_by`: rows that name all that
    `wanted` names, where they cost less to compute.
    """
    if ctx.pipeline.stream:
        return _none_needed(wanted)
    around = ctx.pipeline.around
    if around and around.pick:
        return pick(ctx.lake, wanted, extent, around, version, floor, named_by)
    if version is None:
        keys = {"primary_id": "event_id"} | ({"primary_time": "event_time"} if around is None else {})
        held = ctx.lake.read_named(
            "primary", extent, (named_by or wanted).select(*(F.col(name).alias(key) for name, key in keys.items()))
        )
    else:
        held = ctx.lake.read("primary", version).where(extent.sql())
    if floor is not None:
        held = held.where(F.col("event_time") >= F.lit(floor))
    if around is None:
        named = F.expr("p_id = primary_id AND p_time = primary_time")
        return _found(wanted.join(_first(_renamed(held), ("p_id", "p_time")), named, "left"))
    low, high = (
        F.expr(f"make_dt_interval(0, 0, 0, {each // MICROS}.{each % MICROS:06d})")
        for each in (around.back, around.ahead)
    )
    within = F.col("p_time").between(F.col("event_time") - low, F.col("event_time") + high)
    named = F.expr("p_id = primary_id") & within
    joined = wanted.join(_renamed(held), named, "left")
    return _found(_first(_latest_first(joined, forgotten=ctx.lake.delta.rows("forgotten") > 0)))


def _none_needed(wanted: DataFrame) -> DataFrame:
    """The same of one stream: each event counts whose record is there."""
    there = F.col("payload").isNotNull() & (F.col("payload") != F.lit(EMPTIED))
    return wanted.withColumns({"found": there, "emptied": F.lit(False), "primary": F.lit(None).cast("string")})


def _renamed(held: DataFrame) -> DataFrame:
    return held.select(
        F.col("event_id").alias("p_id"),
        F.col("event_time").alias("p_time"),
        F.col("payload").alias("primary"),
        F.struct("landed_at", "replica", "source_partition", "offset").alias("p_order"),
    )


def _latest_first(joined: DataFrame, *, forgotten: bool) -> DataFrame:
    """Rows in the order of their primary events: the latest before their own first, then those after it; where
    one came twice the first that landed.

    Where any are `forgotten`, one row for each primary event, and those that were forgotten come last.
    """
    far = F.unix_micros("event_time") - F.unix_micros("p_time")
    order = [(far < 0).alias("after"), F.abs(far).alias("far"), F.col("p_order").alias("landed")]
    if forgotten:
        joined = first_of_key(joined, "p_order", key=(*EVENT_KEY, "p_time"))
        order.insert(0, F.coalesce(F.col("primary") == F.lit(EMPTIED), F.lit(False)).alias("emptied"))
    return joined.withColumn("p_order", F.struct(*order))


def _first(rows: DataFrame, key: tuple[str, ...] = EVENT_KEY) -> DataFrame:
    """Of rows with the same key, the one whose primary event landed first."""
    return first_of_key(rows, "p_order", key=key).drop("p_order")


def _found(joined: DataFrame) -> DataFrame:
    known = F.col("primary") != F.lit(EMPTIED)
    columns = {name: F.when(known, F.col(name)) for name in ("p_id", "p_time", "primary")}
    joined = joined.withColumns({"emptied": F.coalesce(~known, F.lit(False))} | columns)
    return (
        joined.withColumn("found", F.col("p_id").isNotNull())
        .withColumn("primary_time", F.coalesce("p_time", "primary_time"))
        .drop("p_id", "p_time")
    )
