"""Runs the contenders in turns and reports ratios.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.throughput --lake s3

runs clickjoin alone, with its lake in a folder and on an S3 server beside it, in turns; `--source kafka` the same from
files and from topics of a broker beside it, which hold the same lines.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.memory import columns, emptied, highest, line, watched
from benchmarks.throughput import topics
from benchmarks.throughput.contenders import (
    CONTENDERS,
    DEALT,
    FLOOR,
    FROM_KAFKA,
    LARGE,
    LIMIT,
    ON_S3,
    clickjoin,
    held,
)
from benchmarks.throughput.server_time import server_seconds
from benchmarks.throughput.work import Work, check, make
from bootstrap import ROOT
from clickjoin.spark.session import configured, in_process
from demo.store import lake_store
from stack.kafka_broker import serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PRODUCT, ROW_GROUPS = "clickjoin", "parquet.block.size"
WARM = 150_000  # more than a batch takes without Spark (batch.driver_bytes), or what is measured first is cold
MEMORY = ("driver", "Python workers", "client", "DuckDB", "together")


@dataclass(frozen=True)
class Run:
    """One contender, once: seconds, the highest memory by role (MB), what it made, and a server's processor time."""

    name: str
    seconds: float
    memory: dict[str, int]
    seen: dict[str, int]
    served: float = 0.0


def warming(folder: Path, clicks: int) -> Work:
    """Logs that are joined first, and not measured."""
    return make(folder / "warm", clicks, clicks // 2, 1)


def once(spark: SparkSession, name: str, work: Work, folder: Path, there: Path | None = None) -> Run:
    """Run a contender. Errors: SystemExit where it lost or doubled an event, unless it promises nothing.

    `there`: an output that is there already.
    """
    out = Path(tempfile.mkdtemp(dir=folder)) / "out"
    if there:
        shutil.copytree(there, out / "joined", copy_function=os.link)
    configured(spark).conf.unset("spark.sql.codegen.wholeStage")
    spark.conf.unset("spark.sql.codegen.factoryMode")
    if name not in (PRODUCT, ON_S3, DEALT, FROM_KAFKA):
        spark.conf.unset(ROW_GROUPS)  # they look nothing up by id: Spark's own long ones suit them better
    spark.catalog.clearCache()
    emptied(spark)
    with watched() as memory:
        start, served = time.perf_counter(), server_seconds()
        table = CONTENDERS[name](spark, work, out)
        seconds, served = time.perf_counter() - start, server_seconds() - served
    seen = check(work, table)
    shutil.rmtree(out.parent)
    if not seen.exactly_once and name != FLOOR:
        raise SystemExit(f"{name} is not exactly once, so there are no figures: {seen}")
    return Run(name, seconds, memory.peaks, asdict(seen), served)


def compared(runs: list[Run], events: int) -> dict[str, Any]:
    """Medians of each contender, and their rates as multiples of the floor's and of the limit's."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(run.name for run in runs):
        own = [run for run in runs if run.name == name]
        seconds = statistics.median(run.seconds for run in own)
        found[name] = {
            "seconds": [round(run.seconds, 2) for run in own], "median": round(seconds, 2),
            "events_a_second": round(events / seconds), "memory_mb": highest(run.memory for run in own),
            "seen": own[-1].seen, "server_seconds": round(statistics.median(run.served for run in own), 2),
        }  # fmt: skip
    for name in {ON_S3, FROM_KAFKA} & found.keys() if PRODUCT in found else ():
        found[name]["of_local"] = round(found[PRODUCT]["median"] / found[name]["median"], 3)
    if {DEALT, FROM_KAFKA} <= found.keys():
        found[FROM_KAFKA]["of_dealt"] = round(found[DEALT]["median"] / found[FROM_KAFKA]["median"], 3)
    for of, by in (("of_the_floor", FLOOR), ("of_the_limit", LIMIT)):
        for part in found.values():
            part[of] = round(found[by]["median"] / part["median"], 3) if by in found else None
    return found


def table(found: dict[str, Any]) -> str:
    """As Markdown."""
    lines = [
        f"| | seconds | events/s | of the floor | of the limit | rows twice | MB: {' | '.join(MEMORY)} |",
        f"|{' --- |' * (6 + len(MEMORY))}",
    ]
    for name, part in found.items():
        lines.append(
            f"| {name} | {part['median']:.1f} | {part['events_a_second']:,} | {part['of_the_floor']} | "
            f"{part['of_the_limit']} | {part['seen']['doubled']:,} | {columns(part['memory_mb'], MEMORY)} |"
        )
    return "\n".join(lines)


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.throughput", description="Events a second, side by side"
    )
    parser.add_argument("--clicks", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=400_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--warm", type=int, default=WARM, help="clicks that warm it up (default %(default)s)")
    parser.add_argument("--held", type=int, default=0, help="rows of an output that one more contender finds there")
    parser.add_argument("--memory", default="3g", help="heap of Java (default %(default)s)")
    parser.add_argument("--only", choices=sorted(CONTENDERS), action="append", help="these alone")
    parser.add_argument("--lake", choices=["local", "s3"], default="local", help="s3: clickjoin alone, on both")
    parser.add_argument(
        "--source", choices=["files", "kafka"], default="files", help="kafka: clickjoin alone, from both"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/throughput.json")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run them, print; figures as JSON."""
    chosen, about = options(arguments), machine()
    names = chosen.only or [name for name in CONTENDERS if chosen.held or name != LARGE]
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-throughput-"))
    broker = serving(folder / "kafka") if chosen.source == "kafka" else nullcontext()
    with lake_store(chosen.lake, folder / "store") as store, broker as kafka:
        if chosen.lake == "s3":
            names, CONTENDERS[ON_S3] = [PRODUCT, ON_S3], partial(clickjoin, store=store)
        if kafka:
            names = [PRODUCT, DEALT, FROM_KAFKA]
            CONTENDERS[DEALT] = partial(clickjoin, dealt=True)
            CONTENDERS[FROM_KAFKA] = partial(clickjoin, servers=kafka.servers)
        result = run(chosen, names, folder, kafka.servers if kafka else "")
    print_out(chosen, result | {"machine": about})
    return 0


def run(chosen: argparse.Namespace, names: list[str], folder: Path, servers: str) -> dict[str, Any]:
    """Make the logs, and topics of the same lines where there is a broker; warm up, run in turns; the figures."""
    spark = in_process(cores="2", memory=chosen.memory, s3=chosen.lake == "s3")
    try:
        warm, work = warming(folder, chosen.warm), make(folder / "logs", chosen.clicks, chosen.queries, 2)
        for logs in (warm, work) if servers else ():
            topics.fill(servers, logs)
            logs.deal()
        if LARGE in names:
            held(spark, folder / "held", chosen.held)
        for name in (name for name in names if name != LARGE):
            once(spark, name, warm, folder)
        runs = []
        for turn in range(chosen.turns):
            for name in names:
                runs.append(once(spark, name, work, folder, folder / "held" if name == LARGE else None))
                print(f"turn {turn + 1}: {name}: {runs[-1].seconds:.1f} s, {line(runs[-1].memory)}", flush=True)
    finally:
        spark.stop()
        remove(folder)
    found = compared(runs, work.events)
    return {"clicks": chosen.clicks, "queries": chosen.queries, "lines": work.events, "found": found}


def print_out(chosen: argparse.Namespace, result: dict[str, Any]) -> None:
    """Print the figures, and write them as JSON."""
    found = result["found"]
    print(f"\n{result['lines']:,} lines: {chosen.clicks:,} clicks on {chosen.queries:,} queries of one day\n")
    print(table(found))
    if ON_S3 in found:
        print(f"\nevents/s from S3 to S3, of those from files into a folder: {found[ON_S3]['of_local']}")
    if FROM_KAFKA in found:
        print(f"\nevents/s from topics of Kafka, of those from files: {found[FROM_KAFKA]['of_local']}")
    if "of_dealt" in found.get(FROM_KAFKA, {}):
        print(f"of those from files whose lines lie as in the topics: {found[FROM_KAFKA]['of_dealt']}")
    for name in {ON_S3, FROM_KAFKA} & found.keys():
        print(f"seconds of these cores that its server took: {found[name]['server_seconds']}")
    save(chosen.out, result)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
