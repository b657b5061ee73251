"""How long the verification of one day takes: makes a lake of that day directly as tables, beside some other days.

    PYTHONPATH=spark_apps:. .venv/bin/python -m benchmarks.verify --ids 10000000

Each id is a click that was joined: a row of `foreign`, of `registry` and of `joined`, in hourly buckets. `--around`
days before it hold as many each, so that one sees whether only the day's own partitions are read. It is verified whole,
then with some rows deleted by hand, so that both passes are timed. It has no log files, so input bytes are no part.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.config import Pipeline
from clickjoin.dispatcher.journal import Journal
from clickjoin.engine import Engine
from clickjoin.engines.extents import bucket_sql
from clickjoin.jobs.upkeep import gc
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.ids import MICROS
from clickjoin.model.txn import Txn
from clickjoin.registry.shards import load_timeline
from clickjoin.schemas import BY_NAME
from clickjoin.spark.session import in_process, make_active
from clickjoin.verification.verify import Verifier, Wanted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY = datetime(2026, 3, 1, tzinfo=UTC)


def pipeline(folder: str, retention: str = "365d") -> Pipeline:
    """A pipeline whose lake lies in a folder."""
    side = {"source": {"kind": "files", "path": f"{folder}/none/*"}, "event_id": "id", "event_time": "embedded"}
    other = {"source": {"kind": "files", "path": f"{folder}/clicks/*"}, "primary_id": "q", "primary_time": "embedded"}
    raw = {
        "pipeline": "bench",
        "engine": "arrow",
        "lake": folder,
        "primary": side,
        "registry": {"retention": retention},
    }
    return Pipeline.model_validate(raw | {"foreign": {**side, **other}})


def rows_of(spark: SparkSession, engine: Engine, day: datetime, ids: int, number: int) -> DataFrame:
    """All columns that any of the three tables has, of one day."""
    low, step = int(day.timestamp() * MICROS), 86400 * MICROS // ids
    rows = spark.range(ids).withColumn("micros", F.expr(f"{low} + id * {step}"))
    rows = rows.withColumn("event_id", F.expr("concat('10.0.', id % 256, '.7:4711:', micros)"))
    rows = rows.withColumn("event_time", F.expr("timestamp_micros(micros)"))
    known = {
        "bucket": F.expr(bucket_sql("event_time", 3600)),
        "shard": F.expr(load_timeline(engine.lake.delta).sql()),
        "primary_id": F.lit("10.0.0.1:1:1772323200000000"),
        "primary_time": F.col("event_time"),
        "payload": F.expr("concat('{\"id\":\"', event_id, '\"}')"),
        "path": F.lit("/log"),
        "source_partition": F.lit("g"),
        "offset": F.col("id") * 50,
        "length": F.lit(50).cast("bigint"),
        "batch": F.lit(number).cast("bigint"),
        "replica": F.lit("main"),
        "landed_at": F.lit(day),
        "token": F.lit(f"bench/main/join/{number}"),
        "outcome": F.lit("joined"),
        "published_at": F.lit(day),
        "event_date": F.to_date("event_time"),
    }
    return rows.withColumns(known).repartition("bucket").sortWithinPartitions("event_time")


def make(spark: SparkSession, engine: Engine, ids: int, days: int) -> None:
    """Write the tables: each day is one settled batch, the last of them DAY's."""
    journal = Journal(engine.lake.delta, "bench", "main", "join")
    for number in range(1, days + 1):
        day = DAY - timedelta(days=days - number)
        rows = rows_of(spark, engine, day, ids, number).persist()
        journal.plan(BatchPlan("bench", "main", "join", number, int(day.timestamp() * MICROS), snapshot=True), day)
        for name in ("foreign", "registry", "joined"):
            engine.lake.append(name, rows.select(*BY_NAME[name].names), Txn("bench/main/join", number))
        journal.settle(number, {}, day)
        rows.unpersist()


def options(about: str | None) -> argparse.Namespace:
    """How large the lake is: ids a day, days as large around the one that is looked at, Spark's memory."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--ids", type=int, default=1_000_000, help="ids a day")
    parser.add_argument("--around", type=int, default=0, help="days as large before it")
    parser.add_argument("--memory", default="8g")
    parser.add_argument("--gc", action="store_true", help="`clickjoin gc` drops the days before while it is verified")
    return parser.parse_args()


def collect(spark: SparkSession, engine: Engine) -> dict[str, Any]:
    """What `clickjoin gc` did, in a session of its own, and in how many seconds."""
    session, begun = spark.newSession(), time.perf_counter()
    make_active(session)
    done = gc(session, engine.pipeline, "main", print, wait=5.0, lake_exists=True)
    return done | {"seconds": round(time.perf_counter() - begun, 1)}


def main() -> None:
    """Make the lake, verify the last day whole, then damaged."""
    chosen = options(__doc__)
    spark = in_process(memory=chosen.memory)
    with tempfile.TemporaryDirectory(prefix="clickjoin-verify-") as folder:
        engine = Engine(spark, pipeline(folder, "1d" if chosen.gc else "365d"))
        begun = time.perf_counter()
        make(spark, engine, chosen.ids, chosen.around + 1)
        print(f"made in {time.perf_counter() - begun:.0f} s", flush=True)
        wanted = Wanted(DAY, DAY + timedelta(days=1))
        kinds: list[tuple[str, tuple[str, ...]]] = [("whole", ()), ("damaged", ("joined", "registry"))]
        for what, damage in [("whole, beside gc", ()), *kinds] if chosen.gc else kinds:
            for at, name in enumerate(damage):
                bucket = f"2026-03-01T0{at + 3}00Z"
                engine.lake.delta.open(name).delete(f"bucket = '{bucket}' AND event_id LIKE '10.0.{at}.7:%'")
            with ThreadPoolExecutor(1) as beside:
                collected = beside.submit(collect, spark, engine) if "gc" in what else None
                report = Verifier(engine, print).verify(wanted)
                if collected:
                    print(json.dumps(collected.result(), default=str), flush=True)
            found = {count.kind: count.count for count in report.counts if count.count}
            print(json.dumps({"what": what, "ids": chosen.ids, "seconds": round(report.seconds, 1), "found": found}))
    print(f"folder {Path(folder).name} removed")


if __name__ == "__main__":
    main()
