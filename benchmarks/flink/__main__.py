"""Runs the floor, Flink SQL and clickjoin in turns and reports ratios of the one run.

With `--source kafka` all but the floor read topics of a broker beside them, and Structured Streaming runs too.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.flink.setting import FLINK_2_3
from benchmarks.flink.shop import join, lay
from benchmarks.flink.warm import STATES, Flink
from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.memory import columns, own, watched
from benchmarks.throughput import connector, topics
from benchmarks.throughput.__main__ import WARM, Run, compared, once
from benchmarks.throughput.contenders import CONTENDERS, FLOOR, FROM_KAFKA, STREAM_KAFKA, clickjoin, stream_stream
from benchmarks.throughput.work import Work, make
from bootstrap import ROOT, Problem
from clickjoin.spark.session import in_process
from stack.kafka_broker import serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY = ("Flink", "driver", "Python workers")
VERSION = "2.3.0"


class Contest:
    """Who runs on what, and the figures so far. `steady`: lines a second of Flink's runs, by name."""

    def __init__(self, spark: SparkSession, flink: Flink, folder: Path, states: list[str], servers: str = "") -> None:
        self._spark, self._flink, self._folder, self._states, self._servers = spark, flink, folder, states, servers
        self._product, self._others = "clickjoin", [FLOOR]
        if servers:
            self._product, self._others = FROM_KAFKA, [FLOOR, STREAM_KAFKA]
            CONTENDERS[FROM_KAFKA] = partial(clickjoin, servers=servers)
            CONTENDERS[STREAM_KAFKA] = partial(stream_stream, servers=servers)
        self.runs: list[Run] = []
        self.steady: dict[str, list[float]] = {}

    def turn(self, work: Work, report: bool = True) -> None:
        """Each contender once. Errors: SystemExit where one lost or doubled an event."""
        runs = [once(self._spark, name, work, self._folder) for name in self._others]
        for state in self._states:
            with watched() as memory:
                ended = join(self._flink, work, state, self._folder, self._servers)
            runs.append(Run(f"Flink SQL, {state} state", ended.seconds, memory.peaks, asdict(ended.seen)))
            self.steady.setdefault(runs[-1].name, []).append(ended.steady)
        runs.append(once(self._spark, self._product, work, self._folder))
        for run in runs if report else []:
            rate = f", {self.steady[run.name][-1]:,.0f} lines/s when steady" if run.name in self.steady else ""
            print(f"  {run.name}: {run.seconds:.1f} s{rate}", flush=True)
        self.runs += runs

    def found(self, events: int) -> dict[str, Any]:
        """Medians, ratios, memory (MB), and what Flink does when steady."""
        found = compared(self.runs, events)
        for name, part in found.items():
            part["memory_mb"] = own(part["memory_mb"], flink=name.startswith("Flink"))
            part["clickjoin_is_faster_by"] = round(part["median"] / found[self._product]["median"], 2)
            if all(self.steady.get(name, [0.0])):
                part["steady_events_a_second"] = round(statistics.median(self.steady[name]))
                part["clickjoin_against_steady"] = round(
                    found[self._product]["events_a_second"] / part["steady_events_a_second"], 2
                )
        return found


def table(found: dict[str, Any]) -> str:
    """As Markdown."""
    heads = ("seconds", "events/s", "of the floor", "events/s when steady", "clickjoin against it", "… when steady")
    lines = [f"| | {' | '.join(heads)} | MB: {' | '.join(MEMORY)} |", "| --- " * (1 + len(heads + MEMORY)) + "|"]
    for name, part in found.items():
        steady = f"{part['steady_events_a_second']:,}" if "steady_events_a_second" in part else ""
        lines.append(
            f"| {name} | {part['median']:.1f} | {part['events_a_second']:,} | {part['of_the_floor']} | {steady} | "
            f"{part['clickjoin_is_faster_by']} | {part.get('clickjoin_against_steady', '')} | "
            f"{columns(part['memory_mb'], MEMORY)} |"
        )
    return "\n".join(lines)


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flink", description="Flink SQL, side by side")
    parser.add_argument("--clicks", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=400_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--memory", default="3g", help="heap of each Java (default %(default)s)")
    parser.add_argument("--only", choices=sorted(STATES), action="append", help="this state alone")
    parser.add_argument("--source", choices=["files", "kafka"], default="files", help="kafka: topics of a broker")
    parser.add_argument("--setup", action="store_true", help="make Flink's environment, and no more")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/flink.json")
    return parser.parse_args(arguments)


def contest(chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Make the logs, warm up, run in turns; returns what was found."""
    warm, work = make(folder / "warm", WARM, WARM // 2, 1), make(folder / "logs", chosen.clicks, chosen.queries, 2)
    for each in (warm, work):
        lay(each)
    if chosen.source == "kafka":
        connector.ensure()
    spark = in_process(cores="2", memory=chosen.memory)
    try:
        broker = serving(folder / "kafka") if chosen.source == "kafka" else nullcontext()
        with Flink(folder, chosen.memory) as flink, broker as kafka:
            states, servers = chosen.only or list(STATES), kafka.servers if kafka else ""
            for each in (warm, work) if kafka else ():
                topics.fill(servers, each)
            Contest(spark, flink, folder, states, servers).turn(warm, report=False)
            of = Contest(spark, flink, folder, states, servers)
            for turn in range(chosen.turns):
                print(f"turn {turn + 1}:", flush=True)
                of.turn(work)
    finally:
        spark.stop()
    found = of.found(work.events)
    about = f"{work.events:,} lines: {chosen.clicks:,} clicks on {chosen.queries:,} queries of one day"
    print(f"\n{about}\n\n{table(found)}")
    return found


def main(arguments: list[str]) -> int:
    """Set up on first use, compare, print; figures as JSON."""
    chosen, about = options(arguments), machine()
    FLINK_2_3.ensure()
    if chosen.setup:
        return 0
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-flink-"))
    try:
        found = contest(chosen, folder)
    finally:
        remove(folder)
    result = {
        "clicks": chosen.clicks,
        "queries": chosen.queries,
        "flink": VERSION,
        "found": found,
        "machine": about,
    }
    save(chosen.out, result)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Problem as problem:
        sys.exit(f"clickjoin: {problem}")
