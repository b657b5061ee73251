"""Airflow on PostgreSQL and Celery with two schedulers: each of its parts is killed while the DAGs join.

No other replica joins: what is done after a kill, Airflow has brought about. The oracle of the tests counts every id.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import psutil
import pytest

from demo.lake import Lake
from stack import Stack
from stack.setup import Setup
from tests.faults.chaos.traffic import Traffic
from tests.oracle import Verdict, examine

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("redis-server") and list(Path("/usr/lib/postgresql").glob("*/bin/initdb"))),
        reason="needs Debian's postgresql and redis-server",
    ),
]
PATIENCE = 300.0
# Who has died is noticed soon, which also shows that the user's own settings are heeded.
SOON = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "30",
    "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "5",
}


class Celery:
    """A running stack whose DAGs join live traffic."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self.traffic = Traffic(folder, 15, "30m", 1000)
        self.lake = Lake(folder / "lake/p")

    def until(self, what: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        """Wait for it."""
        end = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < end, f"not within {seconds:.0f} s; logs are in {self.stack.home.logs}"
            time.sleep(0.3)
        return found

    def asked(self, method: str, path: str, body: Any = None) -> Any:
        """Airflow's answer, or None where it cannot give one yet."""
        with suppress(OSError, HTTPError):
            return self.stack.api(method, path, body)
        return None

    def unpause(self) -> None:
        """Switch the DAGs on that join."""
        for dag in ("join", "retry"):
            self.until(lambda dag=dag: self.asked("PATCH", f"/dags/clickjoin_{dag}__p", {"is_paused": False}))

    def joins(self) -> None:
        """Wait until the output has grown by what was written after now."""
        before = self.lake.rows("joined")
        self.until(lambda: self.lake.rows("joined") > before + 20)

    def kill(self, name: str, *, whole: bool = False) -> None:
        """kill -9 of a part; `whole`: with all that it started."""
        leader = psutil.Process(next(server.pid for server in self.stack.servers if server.name == name))
        killed = [leader, *(leader.children(recursive=True) if whole else ())]
        for process in killed:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(killed, timeout=30)

    def verdict(self) -> Verdict:
        """What the oracle finds."""
        return examine(*(f"{self.folder}/logs/{stream}/*" for stream in ("clicks", "queries")), self.lake.folder)


@pytest.fixture(scope="module")
def celery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Celery]:
    folder = tmp_path_factory.mktemp("celery")
    (folder / "run").mkdir()
    setup = Setup.given({"DATABASE": "postgres", "EXECUTOR": "celery", "SCHEDULERS": "2"})
    begun = time.monotonic()
    with Stack(folder / "home", pipelines=folder / "run", setup=setup, env=SOON, timeout=600) as stack:
        print(f"stack started in {time.monotonic() - begun:.0f} s")
        made = Celery(stack, folder / "run")
        yield made
        made.traffic._over.set()


def test_it_joins_and_its_logs_are_read(celery: Celery) -> None:
    """A task's worker has Spark's address and token from the connection alone, and tells nobody."""
    celery.traffic.start()
    celery.unpause()
    celery.joins()
    runs = "/dags/clickjoin_join__p/dagRuns"
    run = celery.until(lambda: (celery.asked("GET", f"{runs}?state=success&limit=1") or {"dag_runs": []})["dag_runs"])[
        0
    ]
    task = f"{runs}/{quote(run['dag_run_id'])}/taskInstances/join"
    assert celery.stack.api("GET", task)["executor"] in (None, "CeleryExecutor")
    log = str(celery.stack.api("GET", f"{task}/logs/1")["content"])
    assert "replica main" in log
    token = celery.stack.connect_url.partition("token=")[2]
    logs = [path for path in celery.stack.home.folder.rglob("*.log") if path.is_file()]
    assert [path for path in logs if token in path.read_text(errors="replace")] == []
    received = (celery.stack.home.logs / "worker.log").read_text()
    assert re.search(r"Task execute_workload\S* succeeded|succeeded in", received)
    jobs = celery.stack.api("GET", "/jobs?job_type=SchedulerJob&is_alive=true")
    assert jobs["total_entries"] == 2


@pytest.mark.parametrize(("name", "whole"), [
    ("scheduler", False), ("worker", True), ("postgres", False), ("redis", False), ("worker", False),
    ("scheduler-2", True),
])  # fmt: skip
def test_a_part_is_killed_while_the_others_join(celery: Celery, name: str, whole: bool) -> None:
    celery.joins()
    celery.kill(name, whole=whole)
    begun = time.monotonic()
    if "scheduler" in name:
        celery.joins()  # the other one goes on
    assert celery.stack.revive() == [name]
    celery.joins()
    print(f"{name} was killed{' as a whole' if whole else ''}; more was joined {time.monotonic() - begun:.0f} s later")


def test_every_click_is_joined_once(celery: Celery) -> None:
    celery.traffic.stop()

    def settled() -> bool:
        found = celery.verdict()
        return not found.unaccounted and not found.pending and not found.lost

    celery.until(settled)
    found = celery.verdict()
    print(found.text())
    assert found.ok, found.text()
    assert (found.clicks, found.joined) == (celery.traffic.clicks, celery.traffic.clicks), found.text()
    assert found.clicks > 200
