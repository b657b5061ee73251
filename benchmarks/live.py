"""Processes of benchmarks: servers, `clickjoin run` as one that can be killed, a generator that can be stopped."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.throughput.work import STREAMS, Seen, Work, check
from bootstrap import ROOT
from clickjoin.generate import Clock, Traffic, generate
from stack import processes, watch
from stack.home import Home, clean_environment

PATIENCE = 60.0


class Servers:
    """Servers in a home of their own. They stop at the end of the block, or when this process dies."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        self.env = {**clean_environment(), "PYTHONPATH": f"{ROOT / 'spark_apps'}:{ROOT / 'infra'}"}
        self._running: list[processes.Server] = []

    def start(self, name: str, command: list[str], **env: str) -> processes.Server:
        """Start one; what it prints goes to its log. `env`: variables beyond those that all have."""
        folder, log = self.home.folder / name, self.home.logs / f"{name}.log"
        return self._know(processes.start(name, command, self.env | env, folder, log))

    def stop(self, server: processes.Server) -> None:
        """Let one finish what it does, and end."""
        processes.stop([server], patience=PATIENCE)
        self._running.remove(server)

    def kill(self, server: processes.Server) -> None:
        """Kill one and all that it started at once, as a machine does that goes down."""
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        self.stop(server)

    def _know(self, server: processes.Server) -> processes.Server:
        self._running.append(server)
        self.home.write(self._running, {})
        return server

    def __enter__(self) -> Self:
        self.home.make()
        self._know(watch.start(self.home, self.env))
        return self

    def __exit__(self, *error: object) -> None:
        processes.stop(self._running)
        self.home.forget()


def heed_sigterm() -> None:
    """Have SIGTERM end this process as Ctrl-C does, so that what it has started ends too."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def joining(config: Path) -> list[str]:
    """The command of `clickjoin run`, with its own Spark in it."""
    return [sys.executable, "-m", "clickjoin.cli", "run", "--config", str(config)]


class Alone:
    """A pipeline joined by `clickjoin run` instead of Airflow."""

    def __init__(self, servers: Servers, pipeline: Path) -> None:
        self.logs = servers.home.logs
        self._server = servers.start("run", joining(pipeline))

    def runs(self) -> str:
        """Whether it runs."""
        return "running" if self._server.alive() else "ended"


@contextmanager
def alone(home: Path, pipeline: Path) -> Iterator[Alone]:
    """Join a pipeline until the end of the block."""
    with Servers(home) as servers:
        yield Alone(servers, pipeline)


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
    """Write traffic until it is all written, `stop` is set, or who started this is gone."""
    parent = os.getppid()

    def sleep(seconds: float) -> None:
        # Between two appends: an interrupt from outside may come between a line and its entry in the truth.
        if stop.is_set() or os.getppid() != parent:
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
    """Check an output table against the truth of several logs together, id by id, without the product's code."""
    scratch.mkdir(parents=True)
    whole = pa.concat_tables([pq.read_table(folder / "truth.parquet") for folder in folders], promote_options="default")
    pq.write_table(whole, scratch / "truth.parquet")
    return check(Work(scratch, {}), str(table))
