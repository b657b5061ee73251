"""Structured Streaming's side: the same counts by `transformWithState`, and by `groupBy(window)`; state in RocksDB."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from benchmarks.windows.events import MINUTE, Ended, Load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORE = "spark.sql.streaming.stateStore."
SETTINGS = {
    f"{STORE}providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{STORE}rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
}
SOURCE = "id STRING, at BIGINT, item STRING, event_time TIMESTAMP"
COUNTED = "item STRING, window_start BIGINT, num BIGINT"


Way = Callable[[DataFrame], DataFrame]


class Counts(StatefulProcessor):
    """Of one key and window: a count, and a timer that reports it once the watermark has passed the window's end."""

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._count = handle.getValueState("count", "num BIGINT")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        seen = self._count.get()
        if seen is None:
            self._handle.registerTimer(key[1] + MINUTE)
        self._count.update(((seen[0] if seen else 0) + sum(1 for _ in rows),))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        seen = self._count.get()
        self._count.clear()
        yield Row(item=key[0], window_start=key[1], num=seen[0])

    def close(self) -> None:
        """There is nothing to close."""


def by_processor(events: DataFrame) -> DataFrame:
    """By `transformWithState`, a group a key and window, as rows: a pandas frame for each is slower still."""
    begin = (F.floor(F.col("at") / MINUTE) * MINUTE).alias("window_start")
    grouped = events.select("item", begin, "event_time").groupBy("item", "window_start")
    return grouped.transformWithState(Counts(), COUNTED, "Append", "EventTime")


def by_window(events: DataFrame) -> DataFrame:
    """Counts by Spark's own aggregate, no Python."""
    found = events.groupBy(F.window("event_time", f"{MINUTE} milliseconds").alias("w"), "item").count()
    return found.select("item", F.unix_millis("w.start").alias("window_start"), F.col("count").alias("num"))


def counts(spark: SparkSession, how: Way, load: Load, folder: Path) -> Ended:
    """Seconds from the query's start to its end, and what it wrote."""
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    reader = spark.readStream.schema(SOURCE).option("maxFilesPerTrigger", 1)
    events = reader.parquet(str(load.slices)).withWatermark("event_time", "0 seconds")
    writer = how(events).writeStream.format("parquet").option("checkpointLocation", str(folder / "state"))
    start = time.perf_counter()
    query = writer.outputMode("append").trigger(availableNow=True).start(str(folder / "out"))
    query.awaitTermination()
    seconds = time.perf_counter() - start
    rows = pa.concat_tables(pq.read_table(path) for path in sorted((folder / "out").glob("*.parquet")))
    return Ended(seconds, rows)
