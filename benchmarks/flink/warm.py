"""Flink's Java, kept warm in a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pyarrow.parquet as pq
from deltalake import write_deltalake

from benchmarks.flink.setting import FLINK_2_3, Environment

JOB = Path(__file__).with_name("job.py")
# Off the heap, beside `memory`: RocksDB's own; the heap needs none.
STATES = {
    "rocksdb": {"state.backend.type": "rocksdb", "taskmanager.memory.managed.size": "1g"},
    "heap": {"state.backend.type": "hashmap", "taskmanager.memory.managed.size": "64m"},
}


@dataclass(frozen=True)
class Done:
    """A job that has ended: seconds from its first statement to its end, and lines read at which of them."""

    seconds: float
    progress: list[tuple[float, int]]


class Flink:
    """A context in which jobs run one after the other, on loopback, with `memory` of heap; logs lie in `folder`."""

    def __init__(self, folder: Path, memory: str, setting: Environment = FLINK_2_3, job: Path = JOB) -> None:
        """`setting`: its wheels and JARs; `job`: the program that takes its orders."""
        self._folder, self._log, self._command = folder, folder / "flink.log", [str(setting.python), "-P", str(job)]
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SPARK_HOME", "JDK_JAVA_OPTIONS")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        self._environment = environment | {
            "JVM_ARGS": f"-Xmx{memory}",
            "HADOOP_CLASSPATH": setting.class_path(),
            "FLINK_LOG_DIR": str(folder),
            "_python_worker_execution_mode": "process",  # else it listens for Python workers, on all addresses
        }

    def __enter__(self) -> Self:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, env=self._environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        family = psutil.Process(self._process.pid).children(recursive=True) if self._process.poll() is None else []
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        _, left = psutil.wait_procs(family, 10)
        for process in left:
            process.kill()

    def run(self, before: list[str], insert: str, settings: dict[str, str], folder: Path) -> Done:
        """Run SQL to its end, with its checkpoints in `folder`. Errors: SystemExit where it failed."""
        work = {"work": str(folder / "work"), "port": free_port()}
        answer = self.ask({"before": before, "insert": insert, "settings": settings} | work)
        return Done(answer["seconds"], [(at, lines) for at, lines in answer["progress"]])

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Have the job's program carry an order out; its answer. Errors: SystemExit where it failed."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-30:])
            raise SystemExit(f"Flink's process ended:\n{tail}")
        return dict(json.loads(line))


def steady(progress: list[tuple[float, int]], lines: int) -> float:
    """Lines a second between the first and the last tenth of all lines; 0 where that went by unseen."""
    begun, done = (next((at for at in progress if at[1] >= lines * share), None) for share in (0.1, 0.9))
    if not begun or not done or done[0] <= begun[0]:
        return 0.0
    return (done[1] - begun[1]) / (done[0] - begun[0])


def committed(out: Path, table: Path) -> str:
    """Make a Delta table of the ids that a job committed to Parquet, without Flink or Spark; returns its path.

    Files that were not committed have names that begin with a dot.
    """
    files = [path for path in out.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
    write_deltalake(str(table), pq.read_table(files, columns=["event_id", "primary_id"]))
    return str(table)


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
