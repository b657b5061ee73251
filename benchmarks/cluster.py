"""On a Spark cluster of two workers, beside `local[2]`: how long, and whose memory grows with the data.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.cluster --clicks 250000 1000000

A standalone master and two workers of one core each run as processes on loopback, so nothing but the way of working is
another: no network lies between them. The contenders run in turns, and what each made is checked against the truth,
id by id. Before each run Java gives back what it no longer needs, so that what a driver holds is of that run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.live import Servers, heed_sigterm
from benchmarks.memory import TOGETHER, columns, emptied, highest, line, watched
from benchmarks.throughput.__main__ import WARM, Run, once, warming
from benchmarks.throughput.work import Work, make
from bootstrap import ROOT, Problem
from clickjoin.spark.session import configured, jars
from stack import ports, spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLUSTER, LOCAL = PLACES = ("cluster", "local[2]")
NAMES = ("plain join and append", "clickjoin")
WORKERS, PATIENCE = 2, 60.0
ROLES = ("driver", "executors", "Python workers", "client")
_spark: SparkSession | None = None


@dataclass(frozen=True)
class Sizes:
    """Heaps of Java, MB. A local session has one process for what the cluster has three for."""

    driver: int
    executor: int


class Cluster:
    """A master and its workers, among some servers."""

    def __init__(self, servers: Servers, sizes: Sizes) -> None:
        self._servers, port = servers, ports.choose("auto", "master")
        self.url, self.secret = f"spark://127.0.0.1:{port}", secrets.token_hex(16)
        self._properties = servers.home.folder / "cluster.conf"
        self._properties.touch(mode=0o600)
        self._properties.write_text(f"spark.authenticate true\nspark.authenticate.secret {self.secret}\n")
        self._start("master", "master.Master", "--port", str(port))
        self._until(lambda: ports.answers(port), "the master")
        each = ("--cores", "1", "--memory", f"{sizes.executor}m", self.url)
        self.pids = [self._start(f"worker{n}", "worker.Worker", *each) for n in range(WORKERS)]

    def _start(self, name: str, kind: str, *arguments: str) -> int:
        home = Path(pyspark.__file__).parent
        more = ("--work-dir", str(self._servers.home.folder / name)) if name != "master" else ()
        command = [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1",
                   "--webui-port", "0", "--properties-file", str(self._properties), *more, *arguments]  # fmt: skip
        options = {
            "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false", "PYSPARK_PYTHON": sys.executable,
        }  # fmt: skip
        return self._servers.start(name, command, **options).pid

    def _until(self, done: Any, what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > end:
                raise Problem(f"{what} did not answer: see {self._servers.home.logs}")
            time.sleep(0.25)


def begin(master: str, secret: str, sizes: Sizes) -> None:
    """Make this process's session. Errors: Problem where the executors do not come."""
    global _spark
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    from pyspark.sql import SparkSession

    lines = spark.DEFAULTS.read_text(encoding="utf-8").splitlines()
    settings = dict(text.split(None, 1) for text in lines if text and not text.startswith("#"))
    log_settings = ROOT / "spark_apps/clickjoin/spark/log4j2.properties"
    settings.pop("spark.log.level", None)  # log4j2.properties says better what is worth a word
    heap = sizes.driver + (WORKERS * sizes.executor if master == LOCAL else 0)
    settings |= {
        "spark.jars": jars(), "spark.driver.memory": f"{heap}m", "spark.executor.memory": f"{sizes.executor}m",
        "spark.executorEnv.PYTHONPATH": str(ROOT / "spark_apps"), "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_settings}",
        "spark.sql.warehouse.dir": tempfile.gettempdir(), "spark.authenticate.secret": secret,
    }  # fmt: skip
    builder = SparkSession.builder.master(master).appName("benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    _spark = configured(builder.getOrCreate())
    end = time.monotonic() + PATIENCE
    while master != LOCAL and executors(_spark) < WORKERS:
        if time.monotonic() > end:
            raise Problem(f"{executors(_spark)} of {WORKERS} executors have come after {PATIENCE:.0f} s")
        time.sleep(0.25)


def executors(session: SparkSession) -> int:
    """How many executors the session has, the driver not counted."""
    context: Any = session.sparkContext._jsc
    return len(context.sc().statusTracker().getExecutorInfos()) - 1


def run(name: str, work: Work, folder: Path) -> tuple[Run, int]:
    """Run a contender on this process's session; also what is left in use of the driver's heap, MB."""
    assert _spark
    return once(_spark, name, work, folder), emptied(_spark)


@contextmanager
def places(cluster: Cluster, sizes: Sizes) -> Iterator[dict[str, ProcessPoolExecutor]]:
    """A process for each place, with its session; each is begun when it is first asked for something."""
    context = multiprocessing.get_context("spawn")
    masters = {CLUSTER: cluster.url, LOCAL: LOCAL}
    pools = {
        place: ProcessPoolExecutor(1, mp_context=context, initializer=begin, initargs=(master, cluster.secret, sizes))
        for place, master in masters.items()
    }
    try:
        yield pools
    finally:
        for pool in pools.values():
            pool.shutdown()


def measured(
    cluster: Cluster, sizes: Sizes, warm: Work, works: list[Work], turns: int, folder: Path
) -> list[dict[str, Any]]:
    """A row for each input, place and contender: medians of its turns, after one on `warm` that is left out."""
    ways = [(place, name) for place in PLACES for name in NAMES]
    seen: dict[tuple[int, str, str], list[tuple[Run, int]]] = defaultdict(list)
    with places(cluster, sizes) as pools:
        for turn in range(turns + 1):
            for number, work in enumerate(works) if turn else [(-1, warm)]:
                for place, name in ways:
                    each, kept = watched_run(pools[place], cluster.pids if place == CLUSTER else [], name, work, folder)
                    seen[number, place, name].append((each, kept))
                    about = f"turn {turn}: {work.events:,} lines: {place}: {name}: {each.seconds:.1f} s"
                    print(f"{about}, {line(each.memory)}", flush=True)
    return [
        row(work, place, name, seen[number, place, name], seen[number, LOCAL, name])
        for number, work in enumerate(works) for place, name in ways
    ]  # fmt: skip


def watched_run(pool: ProcessPoolExecutor, pids: list[int], name: str, work: Work, folder: Path) -> tuple[Run, int]:
    """Run a contender in another process, with the memory of what it and the processes `pids` hold."""
    if not pids:
        return pool.submit(run, name, work, folder).result()
    with watched(*pids) as memory:
        each, kept = pool.submit(run, name, work, folder).result()
    held = {role: memory.peaks.get(role, 0) for role in ("executors", "Python workers")}
    held[TOGETHER] = each.memory[TOGETHER] + memory.peaks[TOGETHER]  # at most: the two peaks need not meet
    return replace(each, memory=each.memory | held), kept


def row(work: Work, place: str, name: str, runs: list[tuple[Run, int]], local: list[tuple[Run, int]]) -> dict[str, Any]:
    """One contender in one place on one input: seconds and memory of its runs."""
    seconds, other = (statistics.median(each.seconds for each, _ in those) for those in (runs, local))
    return {
        "where": place, "name": name, "clicks": work.truth["clicks"]["events"], "lines": work.events,
        "seconds": [round(each.seconds, 2) for each, _ in runs], "median": round(seconds, 2),
        "of_local": round(other / seconds, 2), "events_a_second": round(work.events / seconds),
        "seen": runs[-1][0].seen, "memory_mb": highest(each.memory for each, _ in runs),
        "driver_heap_kept_mb": max(kept for _, kept in runs),
    }  # fmt: skip


def table(rows: list[dict[str, Any]]) -> str:
    """As Markdown."""
    lines = [f"| clicks | where | | seconds | events/s | of local[2] | MB: {' | '.join(ROLES)} | driver's heap after |"]
    lines.append(f"|{' --- |' * (7 + len(ROLES))}")
    for part in rows:
        lines.append(
            f"| {part['clicks']:,} | {part['where']} | {part['name']} | {part['median']:.1f} | "
            f"{part['events_a_second']:,} | {part['of_local']} | {columns(part['memory_mb'], ROLES)} | "
            f"{part['driver_heap_kept_mb']:,} |"
        )
    return "\n".join(lines)


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description="A cluster beside local[2]")
    parser.add_argument("--clicks", type=int, nargs="+", default=[250_000, 1_000_000], help="sizes of input")
    parser.add_argument("--queries", type=float, default=0.4, help="to a click (default %(default)s)")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--warm", type=int, default=WARM, help="clicks that warm it up (default %(default)s)")
    parser.add_argument("--driver", type=int, default=512, help="its heap, MB (default %(default)s)")
    parser.add_argument("--executor", type=int, default=1024, help="each one's heap, MB (default %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/cluster.json")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Start the cluster, make the logs, run in turns, print; figures as JSON."""
    chosen, about = options(arguments), machine()
    heed_sigterm()
    folder, sizes = Path(tempfile.mkdtemp(prefix="clickjoin-cluster-")), Sizes(chosen.driver, chosen.executor)
    try:
        warm = warming(folder, chosen.warm)
        works = [make(folder / str(n), n, round(n * chosen.queries), 2) for n in chosen.clicks]
        with Servers(folder / "servers") as servers:
            rows = measured(Cluster(servers, sizes), sizes, warm, works, chosen.turns, folder)
    finally:
        remove(folder)
    print(f"\nHeaps: driver {sizes.driver} MB, executors {sizes.executor} MB each\n\n{table(rows)}")
    result = {"found": rows, "heaps": vars(sizes), "machine": about}
    save(chosen.out, result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
