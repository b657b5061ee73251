"""What the uncompacted small files of buckets that are still open cost a batch of 100 clicks.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.crowd --batches 3600 10800 21600

Files of so many earlier batches are added to the logs of `registry`, `primary`, `foreign` and `joined`, one a batch
(four in the registry: its shards), of event times that no click names. They are there in the logs alone: what is
measured is what taking up and searching a log costs, not opening files. No figure is printed unless every click of
every batch was joined.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.engine import ENGINE
from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.registry import NOON
from bootstrap import ROOT
from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.engines.arrow import ArrowTables
from clickjoin.kernel.data_file import DataFile
from clickjoin.model.ids import MICROS
from clickjoin.model.txn import Txn
from clickjoin.spark.session import in_process
from demo.running import write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLICKS, QUERIES, SHARDS = 100, 900, 4
TABLES = {"registry": SHARDS, "primary": 1, "foreign": 1, "joined": 1}
WARM = 12


class Live:
    """A pipeline to which each batch brings a second of live traffic."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder, self.now, self.held = folder, NOON.timestamp() + 60, 0
        for name in ("clicks", "queries"):
            (folder / name).mkdir()
        file = folder / "shop.yaml"
        write_pipeline(
            file, folder / "lake", folder / "queries/*.jsonl", folder / "clicks/*.jsonl",
            registry={"retention": "30d", "bucket": "1h", "shards": SHARDS}, engine=ENGINE,
        )  # fmt: skip
        self.engine = Engine(spark, load(file), clock=lambda: self.now)

    def batch(self) -> float:
        """Seconds of one. Errors: SystemExit unless all of its clicks are joined."""
        self.now += 1
        end = int(self.now * MICROS)
        queries = [f"10.1.0.{number}:77:{end - 900_000 + number * 900}" for number in range(QUERIES)]
        clicks = [f"10.2.0.{number}:77:{end - 10_000 + number * 90}" for number in range(CLICKS)]
        self._grow("queries", [{"event_id": query} for query in queries])
        self._grow(
            "clicks", [{"event_id": click, "query_id": queries[number * 7]} for number, click in enumerate(clicks)]
        )
        start = time.perf_counter()
        settled = self.engine.join_once()
        seconds = time.perf_counter() - start
        if settled is None or settled.metrics["joined"] != CLICKS:
            raise SystemExit(f"{self.folder}: not all is joined, so there are no figures: {settled}")
        return seconds

    def _grow(self, stream: str, records: list[dict[str, str]]) -> None:
        with (self.folder / stream / "log.jsonl").open("a", encoding="utf-8") as log:
            log.writelines(json.dumps(record) + "\n" for record in records)

    def crowd(self, batches: int) -> None:
        """Add files until there are those of so many earlier batches."""
        for name, each in TABLES.items():
            added = [_file(name, batch, shard) for batch in range(self.held, batches) for shard in range(each)]
            for file in added:  # nobody reads them: they only have to be there
                place = Path(self.engine.lake.delta.path(name), file.path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(bytes(file.size))
            ArrowTables(self.engine.lake.delta.root).add(name, added, Txn("crowd", batches))
        self.held = batches


def _file(table: str, batch: int, shard: int) -> DataFile:
    bucket = f"{NOON:%Y-%m-%d-%H}"
    low, high = (f"{NOON:%Y-%m-%dT%H}:00:0{second}.000000Z" for second in (0, 1))
    statistics_ = {
        "numRecords": CLICKS,
        "minValues": {"event_time": low, "batch": 1},
        "maxValues": {"event_time": high, "batch": 1},
        "nullCount": {"event_time": 0, "batch": 0},
    }
    values = {"bucket": bucket} | ({"shard": str(shard)} if table == "registry" else {})
    values = {"event_date": f"{NOON:%Y-%m-%d}"} if table == "joined" else values
    folder = "/".join(f"{name}={value}" for name, value in values.items())
    path = f"{folder}/part-{batch}-{shard}.zstd.parquet"
    return DataFile(path, 3000, CLICKS, values, json.dumps(statistics_))


def measured(live: Live, counts: list[int], turns: int) -> dict[str, Any]:
    """Medians and the slowest tenth, seconds, beside the files of so many batches."""
    for _ in range(WARM):
        live.batch()
    found = {}
    for count in [0, *counts]:
        if count:
            live.crowd(count)
            live.batch()  # takes the new files up, once
        seen = sorted(live.batch() for _ in range(turns))
        found[count] = {"seconds": round(statistics.median(seen), 3), "p90": round(seen[int(turns * 0.9)], 3)}
        print(f"beside {count:,} batches: {found[count]['seconds']:.3f} s", flush=True)
    return found


def table(found: dict[str, Any]) -> str:
    """As Markdown."""
    lines = ["| batches before it, none rewritten | seconds | p90 |", "| --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {n:,} | {part['seconds']:.2f} | {part['p90']:.2f} |" for n, part in found.items())])


def main(arguments: list[str]) -> int:
    """Measure and print; figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crowd", description="What uncompacted files cost")
    parser.add_argument("--batches", type=int, nargs="+", default=[3_600, 10_800, 21_600])
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/crowd.json")
    chosen, about = parser.parse_args(arguments), machine()
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-crowd-"))
    spark = in_process(cores="2", memory="2g")
    try:
        found = measured(Live(spark, folder), sorted(chosen.batches), chosen.turns)
    finally:
        spark.stop()
        remove(folder)
    print(f"\n{table(found)}")
    save(chosen.out, {"found": found, "machine": about})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
