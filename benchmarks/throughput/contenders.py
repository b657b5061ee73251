"""Those who compete. Each reads the logs of a Work and fills a Delta table, or a Parquet file; returns its path.

All carry the same: both ids, the click's time, and both records as text. Each is written as its own documents show it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from benchmarks.engine import ENGINE
from benchmarks.throughput import topics
from benchmarks.throughput.limit import started
from benchmarks.throughput.work import HELD, STREAMS, Work
from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.rounds import Settled
from demo.running import write_pipeline
from demo.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES_A_BATCH = 2
WITHIN = "2 hours"
OUTPUT = "event_id STRING, primary_id STRING, event_time TIMESTAMP, foreign_record STRING, primary_record STRING"
IDS = ("event_id", "primary_id")
QUERY, CLICK = "event_id STRING", "event_id STRING, query_id STRING"
STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def plain(spark: SparkSession, work: Work, out: Path) -> str:
    """Batch join and append: no state, no guarantee. What is written twice is joined twice."""
    clicks, queries = _clicks(spark.read.text(work.glob("clicks"))), _queries(spark.read.text(work.glob("queries")))
    clicks.join(queries, "primary_id").write.format("delta").mode("append").save(str(out / "joined"))
    return str(out / "joined")


def merge(spark: SparkSession, work: Work, out: Path) -> str:
    """`foreachBatch` with a MERGE into the whole output, queries appended to a table of their own first."""
    joined, queries = str(out / "joined"), str(out / "queries")
    _run(_queries(_stream(spark, work, "queries")), out / "a", lambda rows, _: _append(rows, queries))
    if not (out / "joined").exists():
        spark.createDataFrame([], OUTPUT).write.format("delta").save(joined)

    def upsert(rows: DataFrame, _: int) -> None:
        known = spark.read.format("delta").load(queries).dropDuplicates(["primary_id"])
        rows.dropDuplicates(["event_id"]).join(known, "primary_id").createOrReplaceTempView("updates")
        rows.sparkSession.sql(
            f"MERGE INTO delta.`{joined}` t USING updates s ON t.event_id = s.event_id WHEN NOT MATCHED THEN INSERT *"
        )

    _run(_clicks(_stream(spark, work, "clicks")), out / "b", upsert)
    return joined


def held(spark: SparkSession, path: Path, rows: int) -> None:
    """An output that holds so many rows already, of the days before: not timed."""
    at = F.col("id") * 100_000 + 1_700_000_000_000_000
    ids = [
        F.concat(F.lit(f"{HELD}{host}:1:"), at.cast("string")).alias(name) for host, name in zip("cq", IDS, strict=True)
    ]
    texts = [F.concat(F.lit('{"event_id":"'), F.md5(name), F.md5(F.lit(name)), F.lit('"}')) for name in IDS]
    made = spark.range(0, rows, 1, 8).select(*ids, F.timestamp_micros(at).alias("event_time"))
    made.select("*", texts[0].alias("foreign_record"), texts[1].alias("primary_record")).write.format("delta").save(
        str(path)
    )


def stream_stream(spark: SparkSession, work: Work, out: Path, servers: str | None = None) -> str:
    """Structured Streaming's own join of two streams, repeats dropped within a watermark, state in RocksDB.

    `servers`: the broker whose topics hold the same lines (see topics.fill).
    """
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STATE)
    clicks = _clicks(_stream(spark, work, "clicks", servers)).withWatermark("event_time", WITHIN)
    queries = _queries(_stream(spark, work, "queries", servers)).withColumn("query_time", _time("primary_id"))
    queries = queries.withWatermark("query_time", WITHIN)
    clicks = clicks.dropDuplicatesWithinWatermark(["event_id"]).withColumnRenamed("primary_id", "query_id")
    queries = queries.dropDuplicatesWithinWatermark(["primary_id"])
    on = F.expr(f"query_id = primary_id AND event_time >= query_time AND event_time <= query_time + INTERVAL {WITHIN}")
    rows = clicks.join(queries, on).select("event_id", "primary_id", "event_time", "foreign_record", "primary_record")
    path = str(out / "joined")
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(out / "state"))
    writer.outputMode("append").trigger(availableNow=True).start(path).awaitTermination()
    return path


def clickjoin(
    spark: SparkSession, work: Work, out: Path, store: Store | None = None, servers: str | None = None, *,
    dealt: bool = False,
) -> str:  # fmt: skip
    """This project: every event landed, claimed in the registry, published and accounted for.

    `store`: of its lake and of the logs; `servers`: the broker whose topics hold the same lines (see topics.fill);
    `dealt`: from files that lie as those topics do (see Work.deal).
    """
    file, lake = out / "shop.yaml", f"{store.lake}/{out.parent.name}" if store else str(out / "lake")
    if store:
        logs = [_in_store(store, work, name) for name in STREAMS]
    else:
        logs = [topics.source(servers, work, name) if servers else work.glob(name, dealt=dealt) for name in STREAMS]
    write_pipeline(
        file, lake, *logs,
        registry={"retention": "3d", "bucket": "1h", "shards": 4},
        batch={"max_events": 2_000_000, "max_bytes": "512MB", "lease": "60s"}, engine=ENGINE,
    )  # fmt: skip
    Engine(spark, load(file)).drain(tell)
    return str((store.folder / out.parent.name if store else out / "lake") / "shop/joined")


def _in_store(store: Store, work: Work, stream: str) -> str:
    """The same files as objects: their names in the folder that the server serves."""
    name = f"{work.folder.name}-{stream}"
    if not (store.folder / name).exists():
        shutil.copytree(work.folder / stream, store.folder / name, copy_function=os.link)
    return f"{store.lake}/{name}/*.jsonl"


def limit(_: SparkSession, work: Work, out: Path) -> str:
    """DuckDB writing the same tables, with no guarantee: what the machine can do at most (see limit.py)."""
    seconds = started().run(work, out)
    print(f"  {', '.join(f'{name} {took:.1f}' for name, took in seconds.items())}", flush=True)
    return str(out / "joined.parquet")


def tell(item: Settled) -> None:
    """Where the time of a large batch goes."""
    metrics = item.metrics
    steps = {name.removeprefix("seconds_"): metrics[name] for name in metrics if name.startswith("seconds_")}
    each = ", ".join(f"{name} {seconds:.1f}" for name, seconds in steps.items())
    print(f"  {metrics['primary_in']:,} queries, {metrics['events_in']:,} clicks: {each}", flush=True)


def _stream(spark: SparkSession, work: Work, name: str, servers: str | None = None) -> DataFrame:
    if servers:
        return topics.stream(spark, servers, work, name, FILES_A_BATCH)
    reader = spark.readStream.format("text").option("maxFilesPerTrigger", FILES_A_BATCH)
    return reader.load(str(work.folder / name))


def _clicks(lines: DataFrame) -> DataFrame:
    rows = lines.select("value", F.from_json("value", CLICK).alias("r"))
    return rows.select(
        "r.event_id", F.col("r.query_id").alias("primary_id"), _time("r.event_id").alias("event_time"),
        F.col("value").alias("foreign_record"),
    )  # fmt: skip


def _queries(lines: DataFrame) -> DataFrame:
    rows = lines.select("value", F.from_json("value", QUERY).alias("r"))
    return rows.select(F.col("r.event_id").alias("primary_id"), F.col("value").alias("primary_record"))


def _time(name: str) -> Any:
    return F.timestamp_micros(F.element_at(F.split(name, ":"), 3).cast("bigint"))


def _append(rows: DataFrame, path: str) -> None:
    rows.write.format("delta").mode("append").save(path)


def _run(rows: DataFrame, state: Path, each: Any) -> None:
    writer = rows.writeStream.foreachBatch(each).option("checkpointLocation", str(state))
    writer.trigger(availableNow=True).start().awaitTermination()


LARGE = "the same, into an output that holds many rows"
CONTENDERS = {
    "plain join and append": plain, "foreachBatch and MERGE": merge, LARGE: merge, "stream-stream join": stream_stream,
    "clickjoin": clickjoin, "DuckDB, the limit": limit,
}  # fmt: skip
FLOOR = "plain join and append"
LIMIT = "DuckDB, the limit"
ON_S3 = "clickjoin, from S3 to S3"
DEALT = "clickjoin, from files that lie as topics do"
FROM_KAFKA = "clickjoin, from topics of Kafka"
STREAM_KAFKA = "stream-stream join, from topics of Kafka"
