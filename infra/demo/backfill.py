"""What tests and benchmarks of dates share: Airflow's own backfill, and a DAG that waits for a pipeline's dates."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
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
    """`airflow backfill create` from the first to the last date; states of the DAG's backfill runs when it is done.

    `until` waits for what it is given to be true. Errors: Problem if Airflow does not make the backfill.
    """
    command = ["airflow", "backfill", "create", "--dag-id", dag, "--from-date", dates[0], "--to-date", dates[-1]]
    for attempt in range(ATTEMPTS):  # SQLite lets one write at a time, and its scheduler writes as well
        done = subprocess.run([*command, *more], env=stack.env, capture_output=True, text=True, timeout=400)
        made = done.returncode == 0 or (attempt and "AlreadyRunningBackfill" in done.stderr)  # locked after that
        if made or "database is locked" not in done.stderr:
            break
    if not made:
        raise Problem(f"{' '.join(command)}: exit code {done.returncode}\n{(done.stderr + done.stdout)[-2000:]}")
    number = stack.api("GET", f"/backfills?dag_id={dag}&order_by=-id")["backfills"][0]["id"]
    until(lambda: stack.api("GET", f"/backfills/{number}")["completed_at"])
    runs = stack.api("GET", f"/dags/{dag}/dagRuns?limit=100&run_type=backfill")["dag_runs"]
    return [run["state"] for run in runs]
