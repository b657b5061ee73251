"""What the size of the registry costs: GC of a day, a claim of 10,000 ids, and bytes an id, small beside large.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.registry --small 1000000 --large 50000000

Both registries are made here, of ids in Photon's form over the same span of days, and measured in turns on one session.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from benchmarks.folders import remove
from benchmarks.latency_machine import machine
from benchmarks.memory import emptied, line, watched
from clickjoin.engines.arrow import ArrowLake
from clickjoin.engines.arrow.claims import commit_claims
from clickjoin.engines.extents import bucket_sql
from clickjoin.lake.maintenance import sizes
from clickjoin.model.ids import MICROS
from clickjoin.model.shards import Timeline
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.spark.session import in_process

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAYS = 4
SHARDS = 4
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
TIMELINE = Timeline(((datetime(1970, 1, 1, tzinfo=UTC), SHARDS),))
BATCH = 10_000


def ids(spark: SparkSession, count: int, low: datetime, high: datetime, server: int) -> DataFrame:
    """Claims of `count` ids, spread evenly between two moments: columns of the registry."""
    step = (high - low).total_seconds() * MICROS / count
    micros = F.expr(f"CAST({int(low.timestamp() * MICROS)} + id * {step}D AS BIGINT)")
    rows = spark.range(count).withColumn("micros", micros)
    return (
        rows.withColumn(
            "event_id", F.concat(F.lit(f"10.{server}.0."), F.col("id") % 100, F.lit(":77:"), F.col("micros"))
        )
        .withColumn("event_time", F.timestamp_micros("micros"))
        .withColumn("bucket", F.expr(bucket_sql("event_time", 3600)))
        .withColumn("shard", F.expr(TIMELINE.sql()))
        .withColumn("token", F.concat(F.lit("shop/main/join/"), (F.col("id") / 5000).cast("bigint")))
        .withColumn("outcome", F.lit("joined"))
        .select(*REGISTRY.names)
    )


def build(spark: SparkSession, root: Path, count: int) -> ArrowLake:
    """A registry of so many claims over the days before noon."""
    lake = ArrowLake(spark, str(root))
    lake.create_filled(REGISTRY, ids(spark, count, NOON - timedelta(days=DAYS), NOON, 1), "registry")
    return lake


def fresh(lake: ArrowLake, turn: int, server: int) -> DataFrame:
    """10,000 ids that nobody has claimed."""
    low = NOON + timedelta(seconds=10 * turn)
    return ids(lake.spark, BATCH, low, low + timedelta(seconds=5), server).localCheckpoint()


def claim(lake: ArrowLake, turn: int) -> float:
    """Seconds of one claim of 10,000 fresh ids, as a batch makes it that has looked them up."""
    made: Any = fresh(lake, turn, 2).toArrow()
    rows = made.select(REGISTRY.names).cast(arrow_schema(REGISTRY))
    start = time.perf_counter()
    seen = lake.delta.files(REGISTRY.name)["path"]  # a batch has looked these up
    files = lake.delta.write(REGISTRY.name, rows)
    inserted = commit_claims(lake, files, seen, Txn("bench/main/join", turn + 1))
    seconds = time.perf_counter() - start
    assert inserted == BATCH, inserted
    return seconds


def collect(lake: ArrowLake, day: int) -> float:
    """Seconds to drop the oldest day that is left."""
    before = (NOON - timedelta(days=DAYS - day)).strftime("%Y-%m-%dT%H%MZ")
    start = time.perf_counter()
    gone = lake.delta.drop_buckets("registry", before)
    seconds = time.perf_counter() - start
    assert gone.rows, before
    return seconds


def in_turns(
    lakes: dict[str, ArrowLake], turns: range, measure: Callable[[ArrowLake, int], float]
) -> dict[str, list[float]]:
    """The same measurement on each lake in turns, so that what else the machine does falls on all alike."""
    found: dict[str, list[float]] = {name: [] for name in lakes}
    for turn in turns:
        for name, lake in lakes.items():
            found[name].append(measure(lake, turn))
    return found


def compared(spark: SparkSession, folder: Path, counts: dict[str, int], turns: int) -> dict[str, Any]:
    """Everything, as plain data."""
    lakes = {name: build(spark, folder / name, count) for name, count in counts.items()}
    whole = {name: sizes(lake.delta, "registry", by="shard").values() for name, lake in lakes.items()}
    bytes_ = {name: sum(s.bytes for s in held) / sum(s.rows for s in held) for name, held in whole.items()}
    found: dict[str, Any] = {"ids": counts, "bytes_an_id": bytes_}
    emptied(spark)
    with watched() as memory:
        in_turns(lakes, range(2), claim)  # warm
        found |= _medians("claim", in_turns(lakes, range(2, 2 + turns), claim))
        found |= _medians("gc", in_turns(lakes, range(1, DAYS), collect))
    return found | {"memory_mb": memory.peaks}


def _medians(name: str, seconds: dict[str, list[float]]) -> dict[str, Any]:
    medians = {lake: statistics.median(each) for lake, each in seconds.items()}
    return {
        f"{name}_seconds": seconds,
        f"{name}_medians": {lake: round(median, 4) for lake, median in medians.items()},
        f"{name}_ratio": round(medians["large"] / medians["small"], 2),
    }


def table(found: dict[str, Any]) -> str:
    """As Markdown."""
    rows = {"claim": f"claim of {BATCH:,} ids, seconds", "gc": "GC of a day, seconds"}
    lines = [
        f"| | {found['ids']['small']:,} ids | {found['ids']['large']:,} ids | ratio |",
        "| --- | --- | --- | --- |",
    ]
    for name, text in rows.items():
        each = found[f"{name}_medians"]
        lines.append(f"| {text} | {each['small']:.3f} | {each['large']:.3f} | {found[f'{name}_ratio']} |")
    size = found["bytes_an_id"]
    lines.append(f"| bytes an id on disk, packed | {size['small']:.1f} | {size['large']:.1f} | |")
    return "\n".join([*lines, "", line(found["memory_mb"])])


def main(arguments: list[str]) -> int:
    """Build, measure, print; figures as JSON with --out."""
    parser = argparse.ArgumentParser(description="What the size of the registry costs")
    parser.add_argument("--small", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=50_000_000)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--out", type=Path)
    chosen, about = parser.parse_args(arguments), machine()
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-registry-"))
    spark = in_process(cores="2", memory="6g")
    try:
        found = compared(spark, folder, {"small": chosen.small, "large": chosen.large}, chosen.turns)
    finally:
        spark.stop()
        remove(folder)
    print(table(found))
    if chosen.out:
        chosen.out.write_text(json.dumps(found | {"machine": about}, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
