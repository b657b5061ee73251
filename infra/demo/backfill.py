"""What tests and benchmarks of dates share: Airflow's own backfill, and a DAG that waits for a pipeline's dates."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import datetime
from typing import Any

from bootstrap import Problem
from stack import Stack

ATTEMPTS = 5
_DOWNSTREAM = """\
from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, task

with DAG("downstream", schedule=PartitionedAssetTimetable(assets=Asset.ref(name="{pipeline}/dates"))):

    @task
    def report(dag_run=None):
        return dag_run.partition_key

    report()
"""


def downstream(pipeline: str) -> str:
    """Source of DAG `downstream`, which runs once for each date that a pipeline tells of."""
    return _DOWNSTREAM.format(pipeline=pipeline)


def backfill(stack: Stack, dag: str, dates: tuple[str, ...], until: Callable[[Callable[[], Any]], Any],
             *more: str) -> list[str]:  # fmt: skip
    """`airflow backfill create` from the first to the last date; states of its runs when it is done.

    `until` waits for what it is given to be true. Errors: Problem if Airflow does not make the backfill.
    """
    command = ["airflow", "backfill", "create", "--dag-id", dag, "--from-date", dates[0], "--to-date", dates[-1]]
    for attempt in range(ATTEMPTS):  # SQLite lets one write at a time, and its scheduler writes as well
        done = subprocess.run([*command, *more], env=stack.env, capture_output=True, text=True, timeout=400)
        if done.returncode == 0:
            break
        if "database is locked" not in done.stderr or attempt == ATTEMPTS - 1:
            raise Problem(f"{' '.join(command)}: exit code {done.returncode}\n{(done.stderr + done.stdout)[-2000:]}")
        until(lambda: _withdrawn(stack, dag))
    made = _last(stack, dag)
    until(lambda: _last(stack, dag)["completed_at"])
    runs = stack.api("GET", f"/dags/{dag}/dagRuns?limit=100&run_type=backfill")["dag_runs"]
    return [run["state"] for run in runs if _moment(run["queued_at"]) >= _moment(made["created_at"])]


def _withdrawn(stack: Stack, dag: str) -> bool:
    """Withdraw the backfill without runs that Airflow leaves behind where its database was locked in the middle.

    Nothing else can be begun beside it, and after two minutes it counts as complete.
    """
    found = _last(stack, dag)
    if not found or found["completed_at"]:
        return True
    try:
        stack.api("PUT", f"/backfills/{found['id']}/cancel")
    except OSError:  # locked again, or complete by now
        return False
    return True


def _last(stack: Stack, dag: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = stack.api("GET", f"/backfills?dag_id={dag}&order_by=-id")["backfills"]
    return found[0] if found else {}


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
