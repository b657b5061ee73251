"""Runs a plain join and clickjoin on Nexmark's q20 in turns, on one warm session."""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from pyspark.sql import functions as F

from benchmarks.latency_machine import machine
from benchmarks.nexmark.adapter import CATEGORY
from benchmarks.nexmark.logs import build, make
from benchmarks.throughput.contenders import _tell
from benchmarks.throughput.work import Work, check
from bootstrap import ROOT
from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.session import in_process
from demo.running import write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM = 100_000
CORES = 2
FLINK_A_CORE = 19_000  # events a second a core, as Nexmark's own page says of q20
AUCTION, BID = "id STRING, category INT", "id STRING, auction STRING, date_time BIGINT"


@dataclass(frozen=True)
class Run:
    """One contender, once: seconds, seconds of processor time of Python and Java together, and what it made."""

    name: str
    seconds: float
    busy: float
    seen: dict[str, int]


def plain(spark: SparkSession, work: Work, out: Path) -> str:
    """Batch join and append: no state, no guarantee."""
    auctions = _lines(spark, work, "auctions", AUCTION).where(F.col("r.category") == CATEGORY)
    auctions = auctions.select(F.col("r.id").alias("primary_id"), F.col("value").alias("auction"))
    bids = _lines(spark, work, "bids", BID).select(
        F.col("r.id").alias("event_id"), F.col("r.auction").alias("primary_id"),
        F.timestamp_millis("r.date_time").alias("event_time"), F.col("value").alias("bid"),
    )  # fmt: skip
    bids.join(auctions, "primary_id").write.format("delta").mode("append").save(str(out / "joined"))
    return str(out / "joined")


def clickjoin(spark: SparkSession, work: Work, out: Path) -> str:
    """This project: bids are foreign, auctions primary, looked for in the hour before, as a bid does not say when."""
    file = out / "q20.yaml"
    source = {"kind": "files"}
    write_pipeline(
        file, out / "lake", Path(work.glob("auctions")), Path(work.glob("bids")),
        primary={"source": dict(source), "event_id": "id", "event_time": "date_time"},
        foreign={"source": dict(source), "event_id": "id", "event_time": "as_of", "primary_id": "auction",
                 "primary_time": {"within": "1h"}},
        registry={"retention": "3d", "bucket": "1h", "shards": 4},
        retry={"first_delay": "1h"},
        batch={"max_events": 600_000, "max_bytes": "256MB", "lease": "60s"},
        adapter="benchmarks.nexmark.adapter:Category",
    )  # fmt: skip
    Engine(spark, load(file)).drain(_tell)
    return str(out / "lake/q20/joined")


CONTENDERS: dict[str, Callable[[SparkSession, Work, Path], str]] = {
    "plain join and append": plain,
    "clickjoin": clickjoin,
}


def once(spark: SparkSession, name: str, work: Work, folder: Path) -> Run:
    """Run a contender. Errors: SystemExit where it lost, doubled or invented a pair."""
    out = Path(tempfile.mkdtemp(dir=folder)) / "out"
    spark.catalog.clearCache()
    start, spent = time.perf_counter(), _processor_seconds()
    table = CONTENDERS[name](spark, work, out)
    seconds, spent = time.perf_counter() - start, _processor_seconds() - spent
    seen = check(work, table)
    shutil.rmtree(out.parent)
    if not seen.exactly_once:
        raise SystemExit(f"{name} is not exactly once, so there are no figures: {seen}")
    return Run(name, seconds, spent, asdict(seen))


def compared(runs: list[Run], events: int) -> dict[str, Any]:
    """Medians of each contender. A core's share: of the machine's, and of the processor time that was used."""
    found = {}
    for name in CONTENDERS:
        own = [run for run in runs if run.name == name]
        seconds, busy = (statistics.median(getattr(run, what) for run in own) for what in ("seconds", "busy"))
        found[name] = {
            "seconds": [round(run.seconds, 2) for run in own], "median": round(seconds, 2),
            "events_a_second": round(events / seconds), "events_a_second_a_core": round(events / seconds / CORES),
            "events_a_second_of_a_core": round(events / busy), "of_flink": round(events / busy / FLINK_A_CORE, 2),
            "seen": own[-1].seen,
        }  # fmt: skip
    return found


def table(found: dict[str, Any]) -> str:
    """As Markdown."""
    lines = ["| | seconds | events/s | … a core of the machine | … a core in use |", "| --- | --- | --- | --- | --- |"]
    for name, part in found.items():
        cells = (part[f"events_a_second{kind}"] for kind in ("", "_a_core", "_of_a_core"))
        lines.append(f"| {name} | {part['median']:.1f} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    return "\n".join(lines)


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nexmark", description="Nexmark q20")
    parser.add_argument("--events", type=int, default=1_000_000, help="persons, auctions and bids together")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--memory", default="3g", help="heap of Java (default %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/nexmark.json")
    return parser.parse_args(arguments)


def contest(chosen: argparse.Namespace, folder: Path) -> tuple[Work, list[Run]]:
    """Make the logs, warm up, run in turns; returns the logs and the runs."""
    program = build()
    warm, work = make(program, folder / "warm", WARM), make(program, folder / "logs", chosen.events)
    runs = []
    spark = in_process(cores=str(CORES), memory=chosen.memory)
    try:
        for name in CONTENDERS:
            once(spark, name, warm, folder)
        for turn in range(chosen.turns):
            for name in CONTENDERS:
                run = once(spark, name, work, folder)
                print(f"turn {turn + 1}: {name}: {run.seconds:.1f} s, {run.busy:.1f} s of a core", flush=True)
                runs.append(run)
    finally:
        spark.stop()
    return work, runs


def main(arguments: list[str]) -> int:
    """Compare and print; figures as JSON."""
    chosen, about = options(arguments), machine()
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-nexmark-"))
    try:
        work, runs = contest(chosen, folder)
    finally:
        shutil.rmtree(folder)
    found, lines = compared(runs, work.events), {stream: work.truth[stream]["lines"] for stream in work.truth}
    counted = f"{lines['clicks']:,} bids on {lines['queries']:,} auctions"
    print(f"\n{work.events:,} lines: {counted}\n\n{table(found)}")
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    result = {"events": work.events, "found": found, "machine": about}
    chosen.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


def _lines(spark: SparkSession, work: Work, stream: str, schema: str) -> Any:
    return spark.read.text(work.glob(stream)).select("value", F.from_json("value", schema).alias("r"))


def _processor_seconds() -> float:
    """Of this process and its children, those that have ended included."""
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:4]) for process in family)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
