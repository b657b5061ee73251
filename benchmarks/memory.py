"""Peak resident memory while something runs, by role: who of Spark, its Python workers and the client holds how much.

Roles are derived from command lines. Pages that forked Python workers share count once for each of them.
"""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY = 0.5
ROLES = {
    "org.apache.spark.deploy.SparkSubmit": "driver",
    "org.apache.spark.deploy.master.Master": "master",
    "org.apache.spark.deploy.worker.Worker": "workers",
    "org.apache.spark.executor.CoarseGrainedExecutorBackend": "executors",
    "org.apache.flink.client.python.PythonGatewayServer": "Flink",
    "org.apache.fluss.shaded.zookeeper3.org.apache.zookeeper.server.ZooKeeperServerMain": "Fluss",
    "org.apache.fluss.server.coordinator.CoordinatorServer": "Fluss",
    "org.apache.fluss.server.tablet.TabletServer": "Fluss",
    "pyspark.daemon": "Python workers",
    "pyspark.worker": "Python workers",
    "benchmarks.throughput.limit": "DuckDB",
    "clickjoin.cli": "client",
    "airflow": "Airflow",
}
TOGETHER = "together"


@dataclass
class Memory:
    """The highest that was seen, MB: of each role its processes together, and of all at one moment."""

    peaks: dict[str, int] = field(default_factory=dict)

    def take(self, held: Mapping[str, int]) -> None:
        """One look: bytes by role."""
        for role, size in {**held, TOGETHER: sum(held.values())}.items():
            self.peaks[role] = max(self.peaks.get(role, 0), size // 1_000_000)


def role(arguments: list[str], rest: str) -> str:
    """What a process is, by its command line; `rest` where that does not say."""
    title = arguments[0] if arguments else ""
    if title.startswith("airflow "):  # it names its processes itself: a worker with no executor's name is a task
        return "client" if title.startswith("airflow worker") and "Executor" not in title else "Airflow"
    return next((ROLES[argument] for argument in arguments if argument in ROLES), rest)


def held(roots: list[psutil.Process], rest: str) -> Counter[str]:
    """Resident bytes by role, of some processes and all that they started."""
    found = Counter[str]()
    for process in {member for root in roots for member in family(root)}:
        try:
            found[role(process.cmdline(), rest)] += process.memory_info().rss
        except psutil.Error:  # it ended, or is a zombie
            continue
    return found


def family(root: psutil.Process) -> list[psutil.Process]:
    """A process and its descendants; nobody where it has ended."""
    try:
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


@contextmanager
def watched(*pids: int, rest: str = "client") -> Iterator[Memory]:
    """Watch some processes (this one if none is named) and their descendants while the block runs.

    `rest` is the role of those that no command line tells.
    """
    over, seen = threading.Event(), Memory()
    roots = [psutil.Process(pid) for pid in pids] or [psutil.Process()]

    def look() -> None:
        while not over.wait(EVERY):
            seen.take(held(roots, rest))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
        seen.take(held(roots, rest))


def emptied(spark: SparkSession) -> int:
    """Have Java and Arrow give back what nobody needs, or what comes next is charged with it; MB of heap in use."""
    gc.collect()  # type: ignore[attr-defined]  # mypy takes it for the app of this name
    pa.default_memory_pool().release_unused()
    java: Any = spark.sparkContext._jvm
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory()) // 1_000_000


def highest(peaks: Iterable[dict[str, int]]) -> dict[str, int]:
    """By role the highest of several runs."""
    found: dict[str, int] = {}
    for each in peaks:
        found |= {role: max(size, found.get(role, 0)) for role, size in each.items()}
    return found


def line(peaks: Mapping[str, int]) -> str:
    """As one line of text."""
    return "peak MB: " + ", ".join(f"{name} {size:,}" for name, size in sorted(peaks.items(), key=lambda one: one[1]))


def own(peaks: Mapping[str, int], flink: bool) -> dict[str, int]:
    """Of a run beside whom another one's Java waits, warm: what is its own. Flink's is that of all its runs so far."""
    return {role: size for role, size in peaks.items() if role != TOGETHER and (role == "Flink") == flink}


def columns(peaks: Mapping[str, int], names: tuple[str, ...]) -> str:
    """As cells of a Markdown table, one for each role that is named."""
    return " | ".join(f"{peaks.get(name, 0):,}" for name in names)
