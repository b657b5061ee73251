"""One chaos run, from the first line of the logs to the oracle's verdict."""

from __future__ import annotations

import itertools
import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from deltalake.exceptions import DeltaError

from clickjoin.engines.arrow import ArrowTables
from stack import Stack
from stack.gateway import Gateway
from stack.kafka_broker import Broker
from tests.faults.chaos.jobs import ROOT, Job
from tests.faults.chaos.logs import GrowingFiles, Topics
from tests.faults.chaos.store import Lake
from tests.faults.chaos.traffic import Traffic
from tests.oracle import Verdict, examine

SHARDS = (12, 6, 4)
RESUME_PATIENCE = 180.0
WEIGHTS = {"west": 8, "east": 8, "gc": 5, "verify": 4, "reshard": 1, "task": 6, "scheduler": 2, "api-server": 1,
           "dag-processor": 1, "spark": 2}  # fmt: skip


@dataclass
class Outcome:
    """What a run showed. `resumed`: seconds from each kill to the next settled batch of either replica."""

    verdict: Verdict
    kills: Counter[str]
    resumed: list[float]
    wrong: list[str]
    clicks: int
    seconds: float
    codes: dict[str, dict[int, int]] = field(default_factory=dict)
    timeline: list[int] = field(default_factory=list)
    boundary_moves: int = 0

    def text(self) -> str:
        """All of it, for a person."""
        cuts = statistics.quantiles(self.resumed, n=10) if len(self.resumed) > 1 else [0.0] * 9
        spread = f"p50 {cuts[4]:.1f}, p90 {cuts[8]:.1f}, max {max(self.resumed, default=0):.1f}"
        return "\n".join([
            f"{sum(self.kills.values())} kills in {self.seconds:.0f} s: {dict(self.kills)}",
            f"seconds from a kill to the next settled batch: {spread}",
            f"exit codes: {self.codes}; shards in force: {self.timeline}; boundary moved {self.boundary_moves} times",
            self.verdict.text(),
            *self.wrong,
        ])  # fmt: skip


class Chaos:
    """Two replicas with everything round them, and who kills them. With Airflow, `east` is run by its DAGs."""

    attempts = 1000  # to join a click, before it is given up

    def __init__(
        self,
        folder: Path,
        stack: Stack,
        seed: int,
        retention: str,
        report_line: Callable[[str], None],
        lake: Lake | None = None,
        second: Stack | None = None,
        engines: tuple[str, str] = ("arrow", "arrow"),
    ) -> None:
        """`second`: a Spark of its own for `west`; by default both replicas share one. `engines`: of east, of west."""
        self.lake = lake or Lake(str(folder / "lake"), folder / "lake")
        self.folder, self.stack, self.report_line = folder, stack, report_line
        self.second = second or stack
        self.rng = random.Random(seed)
        logs = self.lake.logs or GrowingFiles(folder)
        self.traffic = Traffic(folder, seed, retention, self.attempts, 0, self.lake.place, logs, engines)
        self.delta = ArrowTables(f"{self.lake.place}/p")
        self.kills: Counter[str] = Counter()
        self.resumed: list[float] = []
        self.jobs: dict[str, Job] = {}
        self._shards = itertools.cycle(SHARDS)

    def run(self, kills: int, airflow: bool) -> Outcome:
        """Kill so often, let everything come to its end, and ask the oracle."""
        began = time.monotonic()
        self.traffic.start()
        self._clickjoin("init")
        self._start(airflow)
        self._await_batch(time.time(), patience=RESUME_PATIENCE)
        while sum(self.kills.values()) < kills:
            self._kill_one(airflow)
            time.sleep(self.rng.uniform(0, 2))
        self._end(airflow)
        return self._outcome(began)

    def _outcome(self, began: float, *, redriven: bool = False) -> Outcome:
        logs = (str(self.traffic.logs.disk / f"{stream}/*") for stream in ("clicks", "queries"))
        verdict = examine(*logs, str(self.lake.disk / "p"), redriven=redriven)
        wrong = [text for job in self.jobs.values() for text in job.wrong]
        return Outcome(
            verdict, self.kills, self.resumed, wrong, self.traffic.clicks, time.monotonic() - began,
            {name: dict(job.codes) for name, job in self.jobs.items()},
            [row["shards"] for row in self.delta.read("shard_timeline").to_pylist()],
            self.delta.version("registry_boundary"),
        )  # fmt: skip

    def _start(self, airflow: bool) -> None:
        config = ["--config", str(self.traffic.config)]
        remote = [*config, "--spark-connect", str(self.stack.home.connect_url)]
        west = ["--config", str(self.traffic.west), "--spark-connect", str(self.second.home.connect_url)]
        commands: dict[str, tuple[Callable[[], list[str]], float, tuple[int, ...]]] = {
            "west": (lambda: ["run", "--replica", "west", "--lease", "60", *west], 0, (0, 3, -9)),
            "gc": (lambda: ["gc", "--wait", "3", *remote], 10, (0, 3, -9)),
            "verify": (lambda: ["verify", *remote], 12, (0, 3, -9)),
            "reshard": (lambda: ["reshard", "--shards", str(next(self._shards)), *config], 40, (0, 2, 3, -9)),
        }
        if airflow:
            self._pause(False)
        else:
            commands["east"] = (lambda: ["run", "--replica", "east", "--lease", "60", *remote], 0, (0, 3, -9))
        for name, (command, pause, fine) in commands.items():
            self.jobs[name] = Job(name, command, self.folder / f"{name}.log", pause, fine, self.lake.env)

    def _pause(self, paused: bool) -> None:
        """Switch the replica's DAGs on or off, once Airflow knows them and answers."""
        for dag in ("join", "retry"):
            for _ in range(120):
                with suppress(OSError):
                    self.stack.api("PATCH", f"/dags/clickjoin_{dag}__p", {"is_paused": paused})
                    break
                time.sleep(1)

    def _kill_one(self, airflow: bool) -> None:
        weights = WEIGHTS | ({"store": 4} if self.lake.server else {}) | ({"broker": 6} if self.broker else {})
        name = self.rng.choices(list(weights), list(weights.values()))[0]
        if name in self.jobs:
            killed = self.jobs[name].kill()
        elif name in ("store", "broker"):
            killed = self._kill_store(self.broker if name == "broker" else self.lake.server)
        elif name == "task":
            killed = airflow and self._kill_task()
        else:
            stack = self.rng.choice([self.stack, self.second]) if name == "spark" else self.stack
            killed = self._kill_server(stack, name)
        if not killed:
            time.sleep(0.2)
            return
        self.kills[name] += 1
        since = time.time()
        for stack in (self.stack, self.second):
            if any(not server.alive() for server in stack.servers):
                stack.revive()
        self.resumed.append(self._await_batch(since, RESUME_PATIENCE))
        self.report_line(f"kill {sum(self.kills.values())}: {name}, next batch after {self.resumed[-1]:.1f} s")

    def _kill_task(self) -> bool:
        """Kill a task's own process, or the one of the scheduler's that watches over it."""
        server = next((server for server in self.stack.servers if server.name == "scheduler" and server.alive()), None)
        busy: list[psutil.Process] = []
        for process in psutil.Process(server.pid).children(recursive=True) if server else ():
            with suppress(psutil.Error):
                line = " ".join(process.cmdline())
                if line.startswith("airflow worker -- ") and "<idle>" not in line:
                    busy += [process, *process.children(recursive=True)]
        alive = [process for process in busy if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
        if not alive:
            return False
        with suppress(psutil.Error):
            self.rng.choice(alive).kill()
        return True

    @property
    def broker(self) -> Broker | None:
        """The broker of the logs, if they are topics."""
        return self.traffic.logs.broker if isinstance(self.traffic.logs, Topics) else None

    def _kill_store(self, server: Gateway | Broker | None) -> bool:
        """Kill the S3 server or the broker, and start it again where it was."""
        assert server
        server.kill()
        time.sleep(self.rng.uniform(0, 3))
        server.start()
        return True

    def _kill_server(self, stack: Stack, name: str) -> bool:
        server = next((server for server in stack.servers if server.name == name and server.alive()), None)
        if server is None:
            return False
        killed = []
        for process in (*psutil.Process(server.pid).children(recursive=True), psutil.Process(server.pid)):
            if name == "spark" or process.pid == server.pid:
                with suppress(psutil.Error):
                    process.kill()
                    killed.append(process)
        psutil.wait_procs(killed, timeout=RESUME_PATIENCE)  # gigabytes take a while to go, and look alive until then
        return True

    def _await_batch(self, since: float, patience: float) -> float:
        """Seconds until a batch is settled that was not before; `patience` where none is."""
        begin, before = time.time(), self._settled()
        while time.time() - begin < patience:
            if self._settled() > before:
                return time.time() - since
            time.sleep(0.2)
        raise AssertionError(f"no batch was settled within {patience:.0f} s of a kill")

    def _settled(self) -> int:
        for _ in range(20):
            try:
                return sum(
                    max(self.delta.latest_txn_version("journal", f"p/{name}/join/settled"), 0)
                    for name in ("east", "west")
                )
            except (OSError, DeltaError):  # the store is away, or had one of its moods
                if not self.lake.server:
                    raise
                time.sleep(0.5)
        raise AssertionError("the store does not answer")

    def _end(self, airflow: bool) -> None:
        self.traffic.stop()
        if airflow:
            self._pause(True)
        for job in self.jobs.values():
            job.stop()
        self.lake.calm()
        for name in ("east", "west"):
            self._clickjoin("drain", "--no-check", "--replica", name, remote=True)
        self._clickjoin("verify", remote=True)

    def _clickjoin(self, command: str, *options: str, remote: bool = False) -> None:
        where = ["--spark-connect", str(self.stack.home.connect_url)] if remote else []
        line = [
            sys.executable,
            "-m",
            "clickjoin.cli",
            command,
            "--config",
            str(self.traffic.config),
            *where,
            *options,
        ]
        env = {**os.environ, **self.lake.env}
        done = subprocess.run(line, capture_output=True, text=True, timeout=900, cwd=ROOT / "spark_apps", env=env)
        assert done.returncode == 0, (
            f"{command}: exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )
