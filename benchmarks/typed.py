"""Typed columns against whole records: the same logs joined with `output.columns` and by the default adapter, in turns.

PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.typed --clicks 1000000 --queries 400000 --turns 2
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.engine import ENGINE
from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.memory import family
from benchmarks.throughput.contenders import tell
from benchmarks.throughput.work import Work, check, make
from bootstrap import ROOT
from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.spark.session import in_process
from demo.running import write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM = 150_000  # more than a batch takes without Spark (batch.driver_bytes)
DEFAULT, TYPED = "both records", "typed columns"
COLUMNS = {
    "position": {"from": "foreign.position", "type": "INT"},
    "results": {"from": "primary.results", "type": "BIGINT"},
    "note": {"from": "primary.meta.note", "type": "STRING", "default": "none"},
}
OUTPUTS: dict[str, dict[str, Any]] = {DEFAULT: {}, TYPED: {"output": {"columns": COLUMNS, "records": "none"}}}


def cpu() -> float:
    """Processor seconds so far of this process and all that it started: on a busy machine they vary least."""
    return sum(sum(member.cpu_times()[:2]) for member in family(psutil.Process()))


def once(spark: SparkSession, name: str, work: Work, folder: Path) -> tuple[float, float]:
    """Seconds of one of the two, and processor seconds.

    Errors: SystemExit where its output is not exactly once, or lacks values.
    """
    out = Path(tempfile.mkdtemp(dir=folder))
    write_pipeline(
        out / "shop.yaml", out / "lake", Path(work.glob("queries")), Path(work.glob("clicks")),
        registry={"retention": "3d", "bucket": "1h", "shards": 4},
        batch={"max_events": 2_000_000, "max_bytes": "512MB", "lease": "60s"}, **OUTPUTS[name], engine=ENGINE,
    )  # fmt: skip
    begun, used = time.perf_counter(), cpu()
    engine = Engine(spark, load(out / "shop.yaml"))
    engine.drain(tell)
    seconds, used = time.perf_counter() - begun, cpu() - used
    seen = check(work, str(out / "lake/shop/joined"))
    empty = engine.lake.delta.read("joined", None, ["position"])["position"].null_count if name == TYPED else 0
    if not seen.exactly_once or empty:
        raise SystemExit(f"{name} is not exactly once, or {empty} values are not there: no figures: {seen}")
    remove(out)
    return seconds, used


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.typed", description="Typed columns, side by side")
    parser.add_argument("--clicks", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=400_000)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--warm", type=int, default=WARM, help="clicks that warm it up (default %(default)s)")
    parser.add_argument("--memory", default="3g", help="heap of Java (default %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/typed.json")
    return parser.parse_args(arguments)


def in_turns(chosen: argparse.Namespace, folder: Path) -> dict[str, list[tuple[float, float]]]:
    """Seconds and processor seconds of each turn, by name."""
    spark = in_process(cores="2", memory=chosen.memory)
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in OUTPUTS}
    try:
        warm = make(folder / "warm", chosen.warm, chosen.warm // 2, 1)
        work = make(folder / "logs", chosen.clicks, chosen.queries, 2)
        for name in OUTPUTS:
            once(spark, name, warm, folder)
        for turn in range(chosen.turns):
            for name, seconds in runs.items():
                seconds.append(once(spark, name, work, folder))
                wall, used = seconds[-1]
                print(f"turn {turn + 1}: {name}: {wall:.1f} s, processors {used:.1f} s", flush=True)
    finally:
        spark.stop()
    return runs


def main(arguments: list[str]) -> int:
    """Make the logs, warm up, run in turns, print; figures as JSON."""
    chosen, about = options(arguments), machine()
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-typed-"))
    try:
        runs = in_turns(chosen, folder)
    finally:
        remove(folder)
    found = {name: [round(statistics.median(part), 2) for part in zip(*run, strict=True)] for name, run in runs.items()}
    ratio = [round(typed / whole, 3) for typed, whole in zip(found[TYPED], found[DEFAULT], strict=True)]
    print(f"\n{chosen.clicks:,} clicks on {chosen.queries:,} queries of one day\n")
    print("| | seconds | processor seconds |\n| --- | --- | --- |")
    for name, (seconds, used) in (found | {"ratio": ratio}).items():
        print(f"| {name} | {seconds} | {used} |")
    result = {"clicks": chosen.clicks, "queries": chosen.queries, "runs": runs, "ratio": ratio, "machine": about}
    save(chosen.out, result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
