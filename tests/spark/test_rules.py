"""Rules that are written twice, in Python and in Spark SQL, give the same for any input."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from clickjoin.engines.extents import bucket_sql
from clickjoin.kernel.land_task import buckets_of
from clickjoin.model.extent import timestamp
from clickjoin.model.ids import MICROS, bucket_of, moment
from clickjoin.model.shards import Timeline, expired_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T0, T1, T2 = (datetime(year, 1, 1, tzinfo=UTC) for year in (1970, 2025, 2026))
GROWN = Timeline(((T0, 4), (T1, 8), (T2, 13)))
CHANGES = [int(at.timestamp()) * MICROS for at in (T0, T1, T2)]
WORDS = ["a", "0", ":", "é", "日", "🐍", "\u0301", "\n", "\t", "'", "\\", '"', " ", "\ud7ff", "\uffff"]


def events(count: int) -> list[tuple[str, int]]:
    """Ids of all kinds of characters, and times (microseconds): random ones, and those at the edges of something."""
    rng = random.Random(3)
    low, high = CHANGES[0], int(datetime(2100, 1, 1, tzinfo=UTC).timestamp()) * MICROS
    found = [("", low), ("x" * 5000, high)]
    for _ in range(count):
        name = "".join(rng.choices(WORDS, k=rng.randrange(30)))
        edge = rng.choice([*CHANGES, rng.randrange(low, high) // (60 * MICROS) * 60 * MICROS])
        found.append((name, rng.choice([rng.randrange(low, high), max(edge + rng.randrange(-1, 2), 0)])))
    return found


def rows_of(spark: SparkSession, rows: list[tuple[Any, ...]], ddl: str, *sql: str) -> list[tuple[Any, ...]]:
    """Expressions over rows; their `micros` become `event_time`."""
    frame = spark.createDataFrame(rows, ddl).withColumn("event_time", F.timestamp_micros("micros"))
    return [tuple(row) for row in frame.select("*", *(F.expr(text) for text in sql)).collect()]


def test_buckets_and_shards(spark: SparkSession) -> None:
    widths = (60, 900, 3600, 86_400)
    buckets = [bucket_sql("event_time", width) for width in widths]
    found = rows_of(spark, events(20_000), "event_id STRING, micros BIGINT", GROWN.sql(), *buckets)
    assert len(found) == 20_002
    times = pa.chunked_array([pa.array([row[1] for row in found], pa.timestamp("us", "UTC"))])
    by_arrow = zip(*(buckets_of(times, width).to_pylist() for width in widths), strict=True)
    assert [list(names) for names in by_arrow] == [list(row[4:]) for row in found]
    assert GROWN.shards_of([row[0] for row in found], [row[1] for row in found]) == [row[3] for row in found]
    for name, micros, _, shard, *names in found:
        assert shard == GROWN.shard_of(name, moment(micros)), (name, micros)
        assert names == [bucket_of(micros, width) for width in widths]


def test_buckets_before_1970(spark: SparkSession) -> None:
    rows = [("", -1), ("", -3600 * MICROS), ("", -3600 * MICROS - 1)]
    found = rows_of(spark, rows, "event_id STRING, micros BIGINT", bucket_sql("event_time", 3600))
    assert [row[-1] for row in found] == ["1969-12-31T2300Z", "1969-12-31T2300Z", "1969-12-31T2200Z"]
    times = pa.chunked_array([pa.array([*(row[1] for row in rows), None], pa.timestamp("us", "UTC"))])
    assert buckets_of(times, 3600).to_pylist() == [*(row[-1] for row in found), None]


def test_literals_keep_every_microsecond(spark: SparkSession) -> None:
    micros = [0, 1, CHANGES[2] + 999_999, CHANGES[2] - 1, 1_742_000_000_123_456]
    found = spark.range(1).select(*(F.unix_micros(F.expr(timestamp(moment(at)))) for at in micros)).collect()[0]
    assert list(found) == micros


@pytest.mark.parametrize("moments", [{}, {0: T1, 2: T1}, {0: T1, 1: T2}, {3: T2}], ids=len)
def test_expired(spark: SparkSession, moments: dict[int, datetime]) -> None:
    rows = [(shard, at + more) for shard in range(4) for at in CHANGES[1:] for more in (-1, 0, 1)]
    found = rows_of(spark, rows, "shard INT, micros BIGINT", expired_sql(moments))
    assert found
    for shard, micros, _, expired in found:
        assert expired is (shard in moments and moment(micros) < moments[shard])
