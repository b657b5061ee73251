"""Retries beside new records: how fast clicks join that had to wait for their queries.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.retries --clicks 67000 --turns 3

The same clicks in two lakes on one session, in turns. In one their queries have landed before them, and a batch of new
records joins them; in the other they came first, wait in table `pending`, and a retry joins them once the queries are
there. Of both, the seconds of that one batch are given. The output is checked against the truth, id by id.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.beside_join import command
from benchmarks.engine import ENGINE
from benchmarks.folders import remove
from benchmarks.throughput.work import Work, check, make
from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.rounds import Settled
from clickjoin.spark.session import in_process
from demo.running import write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAYS = ("join", "retry")
LATER = 3600.0  # seconds, after which each retry is due


class Clock:
    """The time of the lake, which this can move on."""

    def __init__(self) -> None:
        self.now = time.time() + 60

    def __call__(self) -> float:
        return self.now


def run(spark: SparkSession, work: Work, way: str, folder: Path) -> Settled:
    """Join all clicks as new records, or as retries; returns the batch. Errors: SystemExit unless each joined once."""
    (folder / "logs").mkdir(parents=True)
    clock, file, logs = Clock(), folder / "shop.yaml", folder / "logs"
    write_pipeline(
        file, str(folder / "lake"), f"{logs}/queries/*.jsonl", f"{logs}/clicks/*.jsonl",
        registry={"retention": "30d", "bucket": "1h", "shards": 4}, batch={"max_events": 5_000_000, "max_bytes": "1GB"},
        engine=ENGINE,
    )  # fmt: skip
    engine = Engine(spark, load(file), clock=clock)
    for stream in ("queries", "clicks") if way == "join" else ("clicks", "queries"):
        shutil.copytree(work.folder / stream, logs / stream)
        batch = engine.join_once()
    if way == "retry":
        clock.now += LATER
        batch = engine.retry_once()
    seen = check(work, str(folder / "lake/shop/joined"))
    if batch is None or not seen.exactly_once:
        raise SystemExit(f"{way}: not every click was joined once, so there are no figures: {seen}")
    return batch


def seconds(batch: Settled) -> dict[str, float]:
    """Of each step of a batch, and of all."""
    steps = {name: float(str(value)) for name, value in batch.metrics.items() if name.startswith("seconds_")}
    return {"all": sum(steps.values())} | {name.removeprefix("seconds_"): value for name, value in steps.items()}


def measured(clicks: int, turns: int, seed: int) -> dict[str, Any]:
    """Medians of both ways, in seconds, and rows joined by each."""
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-retries-"))
    taken: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    rows = {}
    try:
        work = make(folder / "work", clicks, max(clicks * 2 // 5, 1), seed)
        with in_process() as spark:
            for turn in range(turns + 1):
                for way in WAYS:
                    batch = run(spark, work, way, folder / f"{way}-{turn}")
                    rows[way] = int(str(batch.metrics["joined"]))
                    print(turn, way, {name: round(took, 2) for name, took in seconds(batch).items()}, flush=True)
                    if turn:  # what is measured first is cold
                        taken[way].append(seconds(batch))
    finally:
        remove(folder)
    medians = {
        way: {name: statistics.median(run[name] for run in runs) for name in runs[0]} for way, runs in taken.items()
    }
    return {"clicks": clicks, "joined": rows, "seconds": medians}


def table(found: dict[str, Any]) -> str:
    """As Markdown."""
    steps = list(found["seconds"]["join"])
    lines = [
        f"| {way} | {found['joined'][way]:,} | {found['joined'][way] / took['all']:,.0f} | "
        f"{' | '.join(f'{took[step]:.2f}' for step in steps)} |"
        for way, took in found["seconds"].items()
    ]
    ratio = found["seconds"]["retry"]["all"] / found["seconds"]["join"]["all"]
    head = f"| | clicks | a second | {' | '.join(steps)} |\n|{' --- |' * (len(steps) + 3)}"
    return "\n".join((head, *lines, f"\na retry takes {ratio:.2f} times as long"))


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    return command(arguments, "retries", "Retries beside new records", (67_000, 3), measured, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
