"""Without Airflow: `clickjoin run` as a process that can be killed, and a generator that can be stopped."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.throughput.work import STREAMS, Seen, Work, check
from bootstrap import ROOT
from clickjoin.generate import Clock, Traffic, generate
from stack import processes
from stack.home import clean_environment

PATIENCE = 60.0


class Client:
    """`clickjoin run` of one pipeline, with its own Spark in it."""

    def __init__(self, config: Path, log: Path) -> None:
        self.config, self.log = config, log
        self._server: processes.Server | None = None

    def start(self) -> None:
        """Start it; what it prints goes to the log."""
        command = [sys.executable, "-m", "clickjoin.cli", "run", "--config", str(self.config)]
        env = {**clean_environment(), "PYTHONPATH": str(ROOT / "spark_apps")}
        self._server = processes.start("run", command, env, self.config.parent, self.log)

    def died(self) -> bool:
        """Whether it has ended though nobody told it to."""
        return self._server is not None and not self._server.alive()

    def kill(self) -> None:
        """Kill it and its Spark at once, as a machine does that goes down."""
        if self._server:
            with suppress(ProcessLookupError):
                os.killpg(self._server.pid, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """Let it finish its batch, and end."""
        if self._server:
            processes.stop([self._server], patience=PATIENCE)
        self._server = None


class Writer:
    """A generator in a process of its own, so that who measures does not make it late. Ends with the block."""

    def __init__(self, folder: Path, traffic: Traffic) -> None:
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._process = context.Process(target=write, args=(folder, traffic, self._stop), daemon=True)

    def alive(self) -> bool:
        """Whether it still writes. Errors: RuntimeError if it failed."""
        if self._process.exitcode:
            raise RuntimeError(f"the generator ended with {self._process.exitcode}")
        return self._process.is_alive()

    def stop(self) -> None:
        """Write no more lines; the truth about those that are written comes next."""
        self._stop.set()
        self._process.join()

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def write(folder: Path, traffic: Traffic, stop: Any) -> None:
    """Write traffic until it is all written or `stop` is set."""

    def sleep(seconds: float) -> None:
        # Between two appends: an interrupt from outside may come between a line and its entry in the truth.
        if stop.is_set():
            raise KeyboardInterrupt
        time.sleep(seconds)

    with suppress(KeyboardInterrupt):
        generate(folder, traffic, clock=Clock(sleep=sleep))


def truth(folder: Path) -> dict[str, Any] | None:
    """Counts of what was written; None while it is not all written."""
    file = folder / "truth.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def lines(about: dict[str, Any]) -> int:
    """Lines of both streams."""
    return int(sum(about[stream]["lines"] for stream in STREAMS))


def examined(folders: list[Path], table: Path, scratch: Path) -> Seen:
    """Hold an output table against the truth of several logs together, id by id, without the product's code."""
    scratch.mkdir(parents=True)
    whole = pa.concat_tables([pq.read_table(folder / "truth.parquet") for folder in folders], promote_options="default")
    pq.write_table(whole, scratch / "truth.parquet")
    return check(Work(scratch, {}), str(table))
