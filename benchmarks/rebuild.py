"""A date rebuilt beside its join: how fast today's adapter is run again over what is in the output.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.rebuild --clicks 1000000 --turns 1

One batch joins a day of clicks; then the pipeline's file gets columns of its own, and each date of the output is
rebuilt with them. Seconds of the one batch, and of all its dates. The output is checked against the truth and
against the logs, id by id: each click once, with what its records say, by the batch and at the time that it had before.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable

from benchmarks.beside_join import command
from benchmarks.engine import ENGINE
from benchmarks.folders import remove
from benchmarks.throughput.work import STREAMS, Work, check, make
from clickjoin.config import load
from clickjoin.dates.rebuild import rebuild
from clickjoin.engine import Engine
from clickjoin.model.span import Day
from clickjoin.spark.session import in_process
from demo.running import write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = ("join", "rebuild")
COLUMNS = {
    "position": {"from": "foreign.position", "type": "BIGINT"},
    "results": {"from": "primary.results", "type": "BIGINT"},
}
KEPT = ("event_id", "event_time", "primary_id", "primary_time", "token", "replica", "published_at")


def run(spark: SparkSession, work: Work, folder: Path) -> dict[str, float]:
    """Join all clicks, then rebuild their dates; seconds of both. Errors: SystemExit unless each is as it has to be."""
    folder.mkdir(parents=True)
    file, table, taken = folder / "shop.yaml", str(folder / "lake/shop/joined"), {}
    options: dict[str, Any] = {"engine": ENGINE, "registry": {"retention": "30d", "bucket": "1h", "shards": 4}}
    options["batch"] = {"max_events": 5_000_000, "max_bytes": "4GB"}
    write_pipeline(file, str(folder / "lake"), work.glob("queries"), work.glob("clicks"), **options)
    engine = Engine(spark, load(file), clock=lambda: time.time() + 60)
    begun = time.perf_counter()
    engine.join_once()
    taken["join"] = time.perf_counter() - begun
    before = rows(table, *KEPT)
    days = sorted(set(before["event_time"].cast(pa.date32()).to_pylist()))
    write_pipeline(file, str(folder / "lake"), work.glob("queries"), work.glob("clicks"), **options,
                   output={"columns": COLUMNS})  # fmt: skip
    engine = Engine(spark, load(file), clock=lambda: time.time() + 60)
    begun = time.perf_counter()
    rebuilt = sum(rebuild(engine, Day(day).span, number)["rebuilt"] for number, day in enumerate(days, 1))
    taken["rebuild"] = time.perf_counter() - begun
    seen = check(work, table)
    if rebuilt != seen.rows or not seen.exactly_once or not rows(table, *KEPT).equals(before):
        raise SystemExit(f"not every click is there as it was joined, so there are no figures: {rebuilt}, {seen}")
    if wrong := strange(work, rows(table, "event_id", "primary_id", *COLUMNS)):
        raise SystemExit(f"{wrong} rows have not the values of their records, so there are no figures")
    return taken


def rows(table: str, *columns: str) -> pa.Table:
    """Some columns of an output, in the order of its ids."""
    return DeltaTable(table).to_pyarrow_table(columns=list(columns)).sort_by("event_id").combine_chunks()


def strange(work: Work, made: pa.Table) -> int:
    """How many rows do not have the position of their click and the results of their query, as the logs' lines say."""
    results, position = (said(work, *which) for which in zip(STREAMS, ("results", "position"), strict=True))
    each = zip(*(made[name].to_pylist() for name in ("event_id", "primary_id", *COLUMNS)), strict=True)
    return sum(tuple(made) != (position[click], results[query]) for click, query, *made in each)


def said(work: Work, stream: str, field: str) -> dict[str, Any]:
    """A field of each record of a stream, by its id."""
    lines = (line for file in (work.folder / stream).glob("*.jsonl") for line in file.open(encoding="utf-8"))
    return {record["event_id"]: record[field] for record in map(json.loads, lines)}


def measured(clicks: int, turns: int, seed: int) -> dict[str, Any]:
    """Medians of both, in seconds, and rows."""
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-rebuild-"))
    taken: dict[str, list[float]] = {step: [] for step in STEPS}
    try:
        work = make(folder / "work", clicks, max(clicks * 2 // 5, 1), seed)
        warm = make(folder / "warm", 20_000, 8_000, seed)
        with in_process() as spark:
            run(spark, warm, folder / "first")  # what is measured first is cold
            for turn in range(turns):
                each = run(spark, work, folder / f"lake-{turn}")
                print(turn, {step: round(took, 2) for step, took in each.items()}, flush=True)
                shutil.rmtree(folder / f"lake-{turn}")
                for step in STEPS:
                    taken[step].append(each[step])
    finally:
        remove(folder)
    return {"clicks": clicks, "seconds": {step: statistics.median(held) for step, held in taken.items()}}


def table(found: dict[str, Any]) -> str:
    """As Markdown."""
    lines = [
        f"| {step} | {found['clicks']:,} | {found['clicks'] / took:,.0f} | {took:.2f} |"
        for step, took in found["seconds"].items()
    ]
    ratio = found["seconds"]["rebuild"] / found["seconds"]["join"]
    head = "| | clicks | a second | seconds |\n| --- | --- | --- | --- |"
    return "\n".join((head, *lines, f"\na rebuild takes {ratio:.2f} times as long"))


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    return command(arguments, "rebuild", "A rebuild beside its join", (1_000_000, 1), measured, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
