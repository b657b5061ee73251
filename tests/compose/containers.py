"""One of the sets of containers, from a copy of the tree with secrets, ports and volumes of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bootstrap import ROOT
from stack import ports, web
from tests.compose.images import Docker, compose_tool

PATIENCE = 1200.0  # seconds: a busy machine starts ten servers in minutes
ENDING = {"migrate", "demo"}


def copy_tree(folder: Path) -> Path:
    """What git knows of the tree, as it is now: what a clean clone has."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


class Containers:
    """`file`: docker-compose.yml or docker-compose.small.yml of a tree."""

    def __init__(self, docker: Docker, tree: Path, file: str, project: str) -> None:
        self.docker, self.tree, self.project = docker, tree, project
        self.airflow, self.s3 = ports.choose("auto", "AIRFLOW_PORT"), ports.choose("auto", "S3_PORT")
        chosen = {"CLICKJOIN_AIRFLOW_PORT": str(self.airflow), "CLICKJOIN_S3_PORT": str(self.s3)}
        self.env = docker.env | chosen
        self.command = [*compose_tool(docker), "--project-name", project, "--file", str(tree / file)]

    def __call__(self, *arguments: str) -> str:
        """What Compose prints. Errors: RuntimeError with the end of what it says."""
        done = subprocess.run([*self.command, *arguments], env=self.env, cwd=self.tree, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"compose {' '.join(arguments)}: {(done.stdout + done.stderr)[-3000:]}")
        return done.stdout

    @property
    def password(self) -> str:
        """Of Airflow's user admin."""
        return self.variables("airflow")["CLICKJOIN_AIRFLOW_PASSWORD"]

    def variables(self, name: str) -> dict[str, str]:
        """What a file of `make secrets` says."""
        lines = (self.tree / f".run/compose/{name}.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def up(self) -> None:
        """Start all, and wait until each is well and the feeder has ended."""
        self("up", "--detach", "--no-build")
        self.until(self.well, "not all containers are healthy")

    def well(self) -> bool:
        """Whether all that stay are healthy, and what ends has ended well."""
        rows = self.rows()
        return bool(rows) and all(
            (row["State"], row["ExitCode"]) == ("exited", 0) if row["Service"] in ENDING else row["Health"] == "healthy"
            for row in rows
        )

    def rows(self) -> list[dict[str, Any]]:
        """Each container as Compose lists it."""
        return [json.loads(line) for line in self("ps", "--all", "--format", "json").splitlines()]

    def until(self, done: Callable[[], Any], complaint: str, seconds: float = PATIENCE) -> None:
        """Wait for it. Errors: AssertionError with the state and the last words of each container."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                state = [f"{row['Name']}: {row['State']} {row['Health']}" for row in self.rows()]
                raise AssertionError(
                    "\n".join([complaint, *state, self("logs", "--tail", "25", "--no-color")[-20_000:]])
                )
            time.sleep(3)

    def kill(self, name: str) -> None:
        """kill -9 of a container's first process, as the machine's memory killer does it: Docker starts it again."""
        container = f"{self.project}-{name}"
        (before,) = json.loads(self.docker("inspect", container))
        try:
            os.kill(before["State"]["Pid"], signal.SIGKILL)
        except (PermissionError, ProcessLookupError):  # an engine that is another user's, or on another machine
            self.docker("kill", container)
            self.docker("start", container)

        def again() -> bool:
            (now,) = json.loads(self.docker("inspect", container))
            return bool(now["State"]["StartedAt"] != before["State"]["StartedAt"] and now["State"]["Running"])

        self.until(again, f"{name} was not started again", 120)

    def _api(self, path: str, method: str = "GET", body: Any = None) -> Any:
        url = f"http://127.0.0.1:{self.airflow}"
        login = {"username": "admin", "password": self.password}
        token = web.request(f"{url}/auth/token", "POST", login, timeout=60)["access_token"]
        return web.request(f"{url}/api/v2/dags/{path}", method, body, token, timeout=60)

    def run_dag(self, name: str) -> str:
        """Run a DAG once; the state that the run ends in."""
        begun = self._api(f"{name}/dagRuns", "POST", {"logical_date": None})
        place, states = f"{name}/dagRuns/{quote(begun['dag_run_id'])}", set[str]()

        def ended() -> bool:
            states.add(str(self._api(place)["state"]))
            return bool(states & {"success", "failed"})

        self.until(ended, f"a run of {name} has not ended")
        return "failed" if "failed" in states else "success"

    def failures(self) -> list[str]:
        """What the tasks of failed DAG runs said last."""
        said = []
        for run in self._api("~/dagRuns?state=failed&limit=20")["dag_runs"]:
            place = f"{run['dag_id']}/dagRuns/{quote(run['dag_run_id'])}/taskInstances"
            for one in self._api(place)["task_instances"]:
                logs = self._api(f"{place}/{one['task_id']}/logs/{max(one['try_number'], 1)}")
                events = [str(line.get("event", line)) for line in logs["content"] if isinstance(line, dict)]
                said.append(f"{run['dag_id']}.{one['task_id']} {one['state']}: {' | '.join(events)[-2000:]}")
        return said

    def memory(self) -> str:
        """What each container uses, of its limit."""
        names = [row["Name"] for row in self.rows() if row["State"] == "running"]
        return self.docker("stats", "--no-stream", "--format", "{{.Name}}\t{{.MemUsage}}", *names)

    def down(self) -> None:
        """Take all of it away, with its volumes."""
        with suppress(RuntimeError):
            self("kill")  # nothing here is worth a quiet end
        self("down", "--volumes", "--remove-orphans", "--timeout", "1")
