"""One running stack."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import quote

from bootstrap import ROOT, VENV, Problem

from . import airflow, airflow_settings, ground, ports, processes, spark, watch, web
from .home import Home, clean_environment
from .setup import Setup

TAIL = 25
_TRIES = 6
_ANSWERS = 60  # seconds, at most: Airflow's API may wait for its database several times in one request


class Stack:
    """Spark Connect and Airflow, unless asked to leave one of them out.

    As a context manager it stops at the end of the block, or when this process dies.
    """

    def __init__(
        self,
        home: Path | str | None = None,
        *,
        spark_port: int | str = "auto",
        airflow_port: int | str = "auto",
        airflow: bool = True,
        spark_connect: bool = True,
        dags: Path | str | None = None,
        plugins: Path | str | None = None,
        pipelines: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        setup: Setup | None = None,
        triggerer: bool = False,
        timeout: float = 180,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self.home = Home(home)
        self.dags = Path(dags or ROOT / "dags").absolute()
        self.plugins = Path(plugins or ROOT / "plugins").absolute()
        self.pipelines = Path(pipelines or os.environ.get("CLICKJOIN_PIPELINES") or ROOT / "dags/pipelines").absolute()
        self._wanted = {spark.NAME: spark_port} if spark_connect else {}
        self._wanted |= {"airflow": airflow_port} if airflow else {}
        self._extra = dict(env or {})
        self._setup = setup
        self._more = ("triggerer",) if triggerer else ()
        self._timeout = timeout
        self._tick = tick
        self.servers, self.ports = self.home.read()

    @property
    def connect_url(self) -> str:
        """Where Spark clients connect, with the token."""
        if not self.home.connect_url.exists():
            raise Problem(f"no Spark Connect server was started in {self.home.folder}")
        return self.home.connect_url.read_text()

    @property
    def airflow_url(self) -> str:
        """Address of Airflow's UI and API."""
        if "airflow" not in self.ports:
            raise Problem(f"no Airflow was started in {self.home.folder}")
        return f"http://127.0.0.1:{self.ports['airflow']}"

    @property
    def setup(self) -> Setup:
        """What Airflow is made of: as asked for, or as it was last in this folder."""
        return self._setup or Setup.of(self.home) or Setup()

    @property
    def env(self) -> dict[str, str]:
        """Environment for a command that should work with this stack, as `clickjoin` or `airflow`."""
        env = clean_environment()
        env["PATH"] = f"{VENV / 'bin'}:{env.get('PATH', '')}"
        env["CLICKJOIN_HOME"] = str(self.home.folder)
        env["CLICKJOIN_PIPELINES"] = str(self.pipelines)
        if "airflow" in self.ports:
            env = airflow_settings.environment(
                env, self.home, self.ports["airflow"], self.dags, self.plugins, setup=self.setup, ports=self.ports
            )
        return env | self._extra

    @property
    def running(self) -> bool:
        """Whether every server that was started still runs."""
        return bool(self.servers) and all(server.alive() for server in self.servers)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Call Airflow's REST API, `path` as in `/dags`; an error status is an `OSError`.

        Where its database was locked (SQLite) or away, Airflow answers 500 and has done nothing: it is asked again.
        """
        password = json.loads(self.home.passwords.read_text())[airflow.USER]
        login = {"username": airflow.USER, "password": password}
        token = web.request(f"{self.airflow_url}/auth/token", "POST", login, timeout=_ANSWERS)["access_token"]
        tries = _TRIES
        while True:
            try:
                return web.request(f"{self.airflow_url}/api/v2{path}", method, body, token, timeout=_ANSWERS)
            except HTTPError as error:
                tries -= 1
                if error.code != HTTPStatus.INTERNAL_SERVER_ERROR or not tries:
                    raise
            time.sleep(1)

    def start(self, *, tied: bool = True) -> bool:
        """Start what does not run yet and wait until it works; False if all ran already.

        A tied stack stops when this process dies, any other runs until it is stopped.
        """
        with self.home.locked():
            self.servers, self.ports = self.home.read()
            if self.running:
                self._require_same()
                return False
            self._stop()
            try:
                self._start(tied)
            except BaseException:
                self._stop()
                raise
        return True

    def revive(self) -> list[str]:
        """Start again what has died, on its old port, and leave alone what runs; returns the names."""
        with self.home.locked():
            self.servers, self.ports = self.home.read()
            dead = [server for server in self.servers if not server.alive()]
            processes.stop(dead)
            self.servers = [server for server in self.servers if server not in dead]
            for server in dead:
                self._remember(self._start_part(server.name))
                if server.name in ground.NAMES:  # the others stand on it
                    self._wait_for_ground(server.name)
            if any(server.name == spark.NAME for server in dead):
                self._wait("Spark Connect", lambda: spark.healthy(self.ports[spark.NAME]))
        return [server.name for server in dead]

    def _start_part(self, name: str) -> processes.Server:
        if name == spark.NAME:
            return spark.start(self.home, self.ports[name], self.env)
        if name == watch.NAME:
            return watch.start(self.home, self.env)
        if name in ground.NAMES:
            return ground.start(self.home, self.ports[name], name)
        return airflow.start_part(self.home, self.ports["airflow"], self.env, name)

    def stop(self) -> None:
        """Stop everything that was started in this home, by whichever process."""
        with self.home.locked():
            self.servers, self.ports = self.home.read()
            self._stop()

    def _start(self, tied: bool) -> None:
        self.ports = {name: ports.choose(port, f"{name.upper()}_PORT") for name, port in self._wanted.items()}
        if "airflow" in self.ports:
            self.ports |= {name: ports.choose("auto", name) for name in ground.needed(self.setup)}
        since, env = datetime.now(UTC), self.env
        if tied:
            self._remember(watch.start(self.home, env))
        if spark.NAME in self.ports:
            self._remember(spark.start(self.home, self.ports[spark.NAME], env))
        if "airflow" in self.ports:
            self._start_airflow(env)
        if spark.NAME in self.ports:
            self._wait("Spark Connect", lambda: spark.healthy(self.ports[spark.NAME]))
            spark.publish(self.home, self.ports[spark.NAME])
        if "airflow" in self.ports:
            self._wait("Airflow", lambda: airflow.healthy(self.ports["airflow"], since) and self._all_beat(since))

    def _start_airflow(self, env: Mapping[str, str]) -> None:
        """Its database and broker, then its parts."""
        for name in ground.needed(self.setup):
            self._remember(ground.start(self.home, self.ports[name], name))
            self._wait_for_ground(name)
        ground.require_given(self.setup)
        self.setup.remember(self.home)
        airflow.prepare(self.home, env, self.setup)
        for server in airflow.start(self.home, self.ports["airflow"], env, self.setup, self._more):
            self._remember(server)

    def _wait_for_ground(self, name: str) -> None:
        self._wait(name, lambda: ground.healthy(self.home, self.ports[name], name))

    def _all_beat(self, since: datetime) -> bool:
        """Whether each scheduler is at work, and each worker of the stack's own broker."""
        asked = f"/jobs?job_type=SchedulerJob&is_alive=true&start_date_gte={quote(since.isoformat())}"
        try:
            beat = self.setup.schedulers == 1 or self.api("GET", asked)["total_entries"] >= self.setup.schedulers
        except OSError:
            return False
        return bool(beat) and ground.workers_wait(self.home, self.ports, self.setup)

    def _require_same(self) -> None:
        """What runs is left as it is."""
        runs = Setup.of(self.home)
        if self._setup and runs and self._setup != runs:
            raise Problem(f"it runs with {runs}, not {self._setup}: make down first, then make up with the others")

    def _remember(self, started: processes.Server) -> None:
        self.servers = [*self.servers, started]
        self.home.write(self.servers, self.ports)

    def _stop(self) -> None:
        base = [server for server in self.servers if server.name in ground.NAMES]
        processes.stop([server for server in self.servers if server not in base])
        # By SIGTERM, PostgreSQL would wait for whoever is still connected.
        processes.stop(base, patience=15, ask=signal.SIGINT)
        self.servers = []
        self.home.forget()

    def _wait(self, what: str, healthy: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._timeout
        while True:
            dead = next((server for server in self.servers if not server.alive()), None)
            if dead:
                raise Problem(f"{dead.name} stopped while starting; the end of {dead.log}:\n{_tail(Path(dead.log))}")
            if healthy():
                return
            if time.monotonic() > deadline:
                raise Problem(f"{what} did not answer within {self._timeout:.0f} s: see {self.home.logs}")
            self._tick()
            time.sleep(0.25)

    def __enter__(self) -> Self:
        if not self.start():
            raise Problem(f"a stack already runs in {self.home.folder}")
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-TAIL:])
