"""Where some events lie, by Spark or in this process: the literals that prune files and keep claims apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.kernel.land_task import span_of
from clickjoin.model.extent import MINUTE, Extent, minutes_of
from clickjoin.model.ids import MICROS, moment

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


def bucket_sql(column: str, width_seconds: int) -> str:
    """The bucket of a time column, as Spark SQL; the same rule as ids.bucket_of."""
    width = width_seconds * MICROS
    return (
        f"date_format(timestamp_micros(unix_micros({column}) - pmod(unix_micros({column}), {width})), "
        "\"yyyy-MM-dd'T'HHmm'Z'\")"
    )


def minute_sql(column: str) -> str:
    """The minute that a time lies in, by its first microsecond since 1970, as Spark SQL."""
    return f"unix_micros({column}) - pmod(unix_micros({column}), {MINUTE})"


def extent_of(facts: Mapping[str, Any], prefix: str = "") -> Extent:
    """The extent that aggregates `good`, `low`, `high`, `minutes` (microseconds) and `buckets` describe."""
    buckets = facts.get(f"{prefix}buckets") or ()
    if not buckets:
        return Extent(0)
    low, high = moment(facts[f"{prefix}low"]), moment(facts[f"{prefix}high"])
    minutes = minutes_of(start // MINUTE for start in facts.get(f"{prefix}minutes") or ())
    return Extent(facts["good"], tuple(buckets), low, high, minutes)


def extent_facts(time: str = "event_time", bucket: str = "bucket", prefix: str = "") -> list[Column]:
    """Aggregates that `extent_of` takes, but for the count."""
    return [
        F.collect_set(F.expr(bucket)).alias(f"{prefix}buckets"),
        F.collect_set(F.expr(minute_sql(time))).alias(f"{prefix}minutes"),
        F.min(F.unix_micros(time)).alias(f"{prefix}low"),
        F.max(F.unix_micros(time)).alias(f"{prefix}high"),
    ]


def measured(rows: DataFrame) -> tuple[Extent, list[int]]:
    """Where some events lie, and their shards; one job. Columns in: event_time, bucket, shard."""
    wanted = [F.count(F.lit(1)).alias("good"), *extent_facts(), F.collect_set("shard").alias("shards")]
    facts = rows.agg(*wanted).collect()[0].asDict()
    return extent_of(facts), list(facts["shards"])


def extents(rows: DataFrame, bucket_seconds: int) -> tuple[Extent, Extent]:
    """Where some foreign events lie, and where the primary events lie that they name; one job.

    Columns in: event_time, bucket, primary_time.
    """
    named = extent_facts("primary_time", bucket_sql("primary_time", bucket_seconds), "named_")
    facts = rows.agg(F.count(F.lit(1)).alias("good"), *extent_facts(), *named).collect()[0].asDict()
    return extent_of(facts), extent_of(facts, "named_")


def extents_of(rows: pa.Table, bucket_seconds: int) -> tuple[Extent, Extent]:
    """The same of events in this process."""
    facts = {"good": rows.num_rows} | span_of(bucket_seconds, rows, "event_time", "")
    facts |= {"buckets": rows["bucket"].unique().to_pylist()} | span_of(bucket_seconds, rows, "primary_time", "named_")
    return extent_of(facts), extent_of(facts, "named_")
