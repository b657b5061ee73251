"""Flink's Java, kept warm in a process of its own, and what it makes of the logs."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pyarrow.parquet as pq
from deltalake import write_deltalake

from benchmarks.flink.setting import PYTHON, class_path
from benchmarks.throughput.work import STREAMS, Seen, Work, check

JOB = Path(__file__).with_name("job.py")
LANES = 2
# Off the heap, beside `memory`: RocksDB's own; the heap needs none.
STATES = {"rocksdb": ("rocksdb", "1g"), "heap": ("hashmap", "64m")}


@dataclass(frozen=True)
class Ended:
    """A job that has ended: seconds from submission to its end, lines a second in its steady part, what it made."""

    seconds: float
    steady: float
    seen: Seen


class Flink:
    """A context in which jobs run one after the other, on loopback, with `memory` of heap; logs lie in `folder`."""

    def __init__(self, folder: Path, memory: str) -> None:
        self._folder, self._log = folder, folder / "flink.log"
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SPARK_HOME", "JDK_JAVA_OPTIONS")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        self._environment = environment | {
            "JVM_ARGS": f"-Xmx{memory}",
            "HADOOP_CLASSPATH": class_path(),
            "FLINK_LOG_DIR": str(folder),
            "_python_worker_execution_mode": "process",  # else it listens for Python workers, on all addresses
        }

    def __enter__(self) -> Self:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [str(PYTHON), "-P", str(JOB)], cwd=self._folder, env=self._environment, text=True,
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

    def join(self, work: Work, state: str) -> Ended:
        """Run the job on logs as `lanes` lays them. Errors: SystemExit where it failed, lost or doubled an event."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        kind, managed = STATES[state]
        answer = self._ask(
            {"logs": str(_lanes(work)), "out": str(folder / "out"), "work": str(folder / "work"), "state": kind,
             "managed": managed, "port": _free_port()}
        )  # fmt: skip
        seen = _checked(work, folder / "out", folder / "delta")
        shutil.rmtree(folder)
        if not seen.exactly_once:
            raise SystemExit(f"Flink SQL with {state} state is not exactly once, so there are no figures: {seen}")
        return Ended(answer["seconds"], steady(answer["progress"], work.events), seen)

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-30:])
            raise SystemExit(f"Flink's process ended:\n{tail}")
        return dict(json.loads(line))


def lay(work: Work) -> None:
    """Lay the same lines beside the logs as Flink can follow them: a file of the whole day for each reader.

    Flink hands the files of a folder to its readers in no order, so parts that follow one another in time would come
    hours late; partitions of a log, which is what it is made for, each grow in time.
    """
    for stream in STREAMS:
        parts = sorted((work.folder / stream).glob("*.jsonl"))
        lines = [line for part in parts for line in part.read_bytes().splitlines(keepends=True)]
        folder = _lanes(work) / stream
        folder.mkdir(parents=True)
        for lane in range(LANES):
            (folder / f"{lane}.jsonl").write_bytes(b"".join(lines[lane::LANES]))


def steady(progress: list[list[float]], lines: int) -> float:
    """Lines a second between the first and the last tenth of all lines; 0 where that went by unseen."""
    begun, done = (next((at for at in progress if at[1] >= lines * share), None) for share in (0.1, 0.9))
    if not begun or not done or done[0] <= begun[0]:
        return 0.0
    return (done[1] - begun[1]) / (done[0] - begun[0])


def _lanes(work: Work) -> Path:
    return work.folder / "lanes"


def _checked(work: Work, out: Path, scratch: Path) -> Seen:
    """What was committed (names of other files begin with a dot), held against the truth without Spark or Flink."""
    files = [path for path in out.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
    write_deltalake(str(scratch), pq.read_table(files, columns=["event_id", "primary_id"]))
    return check(work, str(scratch))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
