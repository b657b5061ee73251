"""Flink's delta join over Fluss beside clickjoin, in turns on the same lines.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.fluss --setup      # once: .venv-fluss, 0.9 GB
    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.fluss --clicks 1000000 --queries 400000 --turns 2

The job fills a table of Fluss from each log, which keeps the first of each id, and joins them; it is done when all
pairs are written and a checkpoint holds. What both made is checked id by id.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.flink.shop import lay
from benchmarks.flink.warm import Flink
from benchmarks.fluss.delta_join import LOOKUPS, join
from benchmarks.fluss.servers import FLUSS, serving
from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.live import heed_sigterm
from benchmarks.memory import columns, watched
from benchmarks.throughput.__main__ import WARM, Run, compared, once
from benchmarks.throughput.contenders import FLOOR
from benchmarks.throughput.work import make
from bootstrap import ROOT, Problem
from clickjoin.spark.session import in_process

PRODUCT, MEMORY = "clickjoin", ("Fluss", "Flink", "driver", "Python workers")


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fluss", description="Flink's delta join over Fluss")
    parser.add_argument("--clicks", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=400_000)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--lookups", choices=LOOKUPS, default="tuned", help="how it looks up (default %(default)s)")
    parser.add_argument("--memory", default="3g", help="heap of each Java (default %(default)s)")
    parser.add_argument("--setup", action="store_true", help="make its environment, and no more")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/fluss.json")
    return parser.parse_args(arguments)


def contest(chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Make the logs, warm up, run in turns; returns what was found."""
    warm, work = make(folder / "warm", WARM, WARM // 2, 1), make(folder / "logs", chosen.clicks, chosen.queries, 2)
    runs: list[Run] = []
    spark = in_process(cores="2", memory=chosen.memory)
    try:
        job = Path(__file__).with_name("job.py")
        with serving(folder / "fluss") as servers, Flink(folder, chosen.memory, FLUSS, job) as flink:
            for logs in (warm, work):
                lay(logs)
            for logs in (warm, *[work] * chosen.turns):
                with watched() as memory:
                    ended = join(flink, logs, servers, chosen.lookups, folder)
                name = f"Flink's delta join over Fluss, {chosen.lookups}"
                both = [Run(name, ended.seconds, memory.peaks, asdict(ended.seen))]
                both += [once(spark, contender, logs, folder) for contender in (PRODUCT, FLOOR)]
                for run in both if logs is work else []:
                    print(f"{run.name}: {run.seconds:.1f} s", flush=True)
                    runs.append(run)
    finally:
        spark.stop()
    found = compared(runs, work.events)
    for part in found.values():
        part["clickjoin_is_faster_by"] = round(part["median"] / found[PRODUCT]["median"], 2)
    return {"clicks": chosen.clicks, "queries": chosen.queries, "lines": work.events, "found": found}


def table(found: dict[str, Any]) -> str:
    """As Markdown."""
    lines = [f"| | seconds | events/s | clickjoin is faster by | MB: {' | '.join(MEMORY)} |", "| --- " * 8 + "|"]
    for name, part in found.items():
        lines.append(
            f"| {name} | {part['median']:.1f} | {part['events_a_second']:,} | {part['clickjoin_is_faster_by']} | "
            f"{columns(part['memory_mb'], MEMORY)} |"
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Compare and print; figures as JSON."""
    chosen, about = options(arguments), machine()
    FLUSS.ensure()
    if chosen.setup:
        return 0
    heed_sigterm()
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-fluss-"))
    try:
        result = contest(chosen, folder)
    finally:
        remove(folder)
    print(f"\n{result['lines']:,} lines: {chosen.clicks:,} clicks on {chosen.queries:,} queries of one day\n")
    print(table(result["found"]))
    save(chosen.out, result | {"machine": about})
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Problem as problem:
        sys.exit(f"clickjoin: {problem}")
