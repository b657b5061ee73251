"""Runs a plain join and clickjoin on Nexmark's q20 in turns, on one warm session."""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession

from benchmarks.flink.setting import FLINK_2_3
from benchmarks.flink.warm import Flink, committed
from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.memory import columns, emptied, highest, own, watched
from benchmarks.nexmark.contenders import clickjoin, flink, plain
from benchmarks.nexmark.logs import build, make
from benchmarks.throughput.work import Work, check
from bootstrap import ROOT, Problem
from clickjoin.spark.session import in_process

Contender = Callable[[Work, Path], Path]

WARM = 100_000
CORES = 2
FLINK, MEMORY = "Flink SQL, RocksDB state", ("Flink", "driver", "Python workers")
FLINK_A_CORE = 19_000  # events a second of a core in use, as Nexmark's own page says of q20


@dataclass(frozen=True)
class Run:
    """One contender, once: seconds, seconds of processor time of Python and Java together, highest memory by role
    (MB), and what it made."""

    name: str
    seconds: float
    busy: float
    memory: dict[str, int]
    seen: dict[str, int]


def once(name: str, contender: Contender, work: Work, folder: Path) -> Run:
    """Run a contender. Errors: SystemExit where it lost, doubled or invented a pair."""
    out = Path(tempfile.mkdtemp(dir=folder)) / "out"
    emptied(SparkSession.active())
    with watched() as memory:
        start, spent = time.perf_counter(), _processor_seconds()
        made = contender(work, out)
        seconds, spent = time.perf_counter() - start, _processor_seconds() - spent
    delta = (made / "_delta_log").exists()
    seen = check(work, str(made) if delta else committed(made, out / "delta"))
    shutil.rmtree(out.parent)
    if not seen.exactly_once:
        raise SystemExit(f"{name} is not exactly once, so there are no figures: {seen}")
    return Run(name, seconds, spent, memory.peaks, asdict(seen))


def compared(runs: list[Run], events: int) -> dict[str, Any]:
    """Medians of each contender. A core's share: of the machine's, and of the processor time that was used."""
    found = {}
    for name in dict.fromkeys(run.name for run in runs):
        runs_of = [run for run in runs if run.name == name]
        seconds, busy = (statistics.median(getattr(run, what) for run in runs_of) for what in ("seconds", "busy"))
        found[name] = {
            "seconds": [round(run.seconds, 2) for run in runs_of], "median": round(seconds, 2),
            "events_a_second": round(events / seconds), "events_a_second_a_core": round(events / seconds / CORES),
            "events_a_second_of_a_core": round(events / busy), "of_flink": round(events / busy / FLINK_A_CORE, 2),
            "memory_mb": own(highest(run.memory for run in runs_of), flink=name == FLINK), "seen": runs_of[-1].seen,
        }  # fmt: skip
    return found


def table(found: dict[str, Any]) -> str:
    """As Markdown."""
    lines = [
        f"| | seconds | events/s | … a core of the machine | … a core in use | MB: {' | '.join(MEMORY)} |",
        f"|{' --- |' * (5 + len(MEMORY))}",
    ]
    for name, part in found.items():
        cells = (part[f"events_a_second{kind}"] for kind in ("", "_a_core", "_of_a_core"))
        lines.append(f"| {name} | {part['median']:.1f} | " + " | ".join(f"{cell:,}" for cell in cells))
        lines[-1] += f" | {columns(part['memory_mb'], MEMORY)} |"
    return "\n".join(lines)


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nexmark", description="Nexmark q20")
    parser.add_argument("--events", type=int, default=1_000_000, help="persons, auctions and bids together")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--memory", default="3g", help="heap of each Java (default %(default)s)")
    parser.add_argument("--flink", action="store_true", help="Flink SQL on this machine, too")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/nexmark.json")
    return parser.parse_args(arguments)


@contextmanager
def ready(chosen: argparse.Namespace, folder: Path) -> Iterator[dict[str, Contender]]:
    """Those who compete, by name, on sessions that end with the context."""
    with ExitStack() as stack:
        spark = in_process(cores=str(CORES), memory=chosen.memory)
        stack.callback(spark.stop)
        contenders: dict[str, Contender] = {"plain join and append": partial(plain, spark)}
        if chosen.flink:
            FLINK_2_3.ensure()
            contenders[FLINK] = partial(flink, stack.enter_context(Flink(folder, chosen.memory)))
        yield contenders | {"clickjoin": partial(clickjoin, spark)}


def contest(chosen: argparse.Namespace, folder: Path) -> tuple[Work, list[Run]]:
    """Make the logs, warm up, run in turns; returns the logs and the runs."""
    program = build()
    warm, work = make(program, folder / "warm", WARM), make(program, folder / "logs", chosen.events)
    runs = []
    with ready(chosen, folder) as contenders:
        for name, contender in contenders.items():
            once(name, contender, warm, folder)
        for turn in range(chosen.turns):
            for name, contender in contenders.items():
                run = once(name, contender, work, folder)
                print(f"turn {turn + 1}: {name}: {run.seconds:.1f} s, {run.busy:.1f} s of a core", flush=True)
                runs.append(run)
    return work, runs


def main(arguments: list[str]) -> int:
    """Compare and print; figures as JSON."""
    chosen, about = options(arguments), machine()
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-nexmark-"))
    try:
        work, runs = contest(chosen, folder)
    finally:
        remove(folder)
    found, lines = compared(runs, work.events), {stream: work.truth[stream]["lines"] for stream in work.truth}
    counted = f"{lines['clicks']:,} bids on {lines['queries']:,} auctions"
    print(f"\n{work.events:,} lines: {counted}\n\n{table(found)}")
    result = {"events": work.events, "found": found, "machine": about}
    save(chosen.out, result)
    return 0


def _processor_seconds() -> float:
    """Of this process and its children, those that have ended included."""
    spent = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.Error):  # it ends just now, and its parent has its time
            spent += sum(process.cpu_times()[:4])
    return spent


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Problem as problem:
        sys.exit(f"clickjoin: {problem}")
