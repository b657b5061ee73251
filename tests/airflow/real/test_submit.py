"""spark-submit for real: the same jobs, without a server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clickjoin.jobs.all_jobs import JOBS
from clickjoin.model.errors import ConfigError
from clickjoin_airflow.job import JobRun, runner
from tests.airflow.real.live import Live
from tests.airflow.real.logs import Logs
from tests.sampled import in_full, some

pytestmark = [pytest.mark.spark, pytest.mark.slow]
EXTRA = {"mode": "submit", "master": "local[2]"}
TODAY = f"{datetime.now(UTC):%Y-%m-%d}"
# What each job is asked for, and a field of the summary that it alone can give.
ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "run": ({}, "batches"),
    "drain": ({}, "accounts"),
    "join": ({}, "batches"),
    "join_group": ({"hands_over": False}, "pipelines"),
    "retry": ({"may_be_new": True}, "waiting"),
    "redrive": ({}, "redriven"),
    "process": ({"check": True}, "verdict"),
    "gc": ({"wait": 0.0}, "boundary"),
    "reshard": ({}, "shards"),
    "rebuild": ({"what": "registry", "replace": True}, "claims"),
    "verify": ({}, "ok"),
    "quality": ({"date": TODAY}, "verdict"),
    "close_day": ({"date": TODAY}, "state"),
    "backfill": ({"since": TODAY}, "dates"),
    "plan_backfill": ({"since": TODAY}, "days"),
    "reclose_changed": ({}, "days"),
    "forget": ({"where": "primary.words=red shoes"}, "dry_run"),
}


def test_a_join(tmp_path: Path, write_pipeline: Callable[..., Path]) -> None:
    config = write_pipeline(tmp_path, "clicks")
    logs, said = Logs(tmp_path, "clicks"), list[str]()
    for _ in range(3):
        logs.click(logs.query())
    summary = runner(EXTRA).run(JobRun("join", str(config), "main", 1.0, "dag/run/1"), said.append)
    assert (summary["batches"], summary["joined"]) == (1, 3)
    assert any("join 1: " in line for line in said)
    logs.wait(0)


@in_full
def test_a_wrong_adapter(tmp_path: Path, write_pipeline: Callable[..., Path]) -> None:
    config = write_pipeline(tmp_path, "clicks", adapter="no_such_module:Adapter")
    with pytest.raises(ConfigError, match="no_such_module:Adapter: cannot be imported"):
        runner(EXTRA).run(JobRun("join", str(config), "main", 1.0, "dag/run/1"), lambda _: None)


@pytest.fixture(scope="module")
def worked(live: Live, tmp_path_factory: pytest.TempPathFactory, write_pipeline: Callable[..., Path]) -> Path:
    """The file of a pipeline that has joined three clicks."""
    folder = tmp_path_factory.mktemp("worked")
    config, logs = write_pipeline(folder, "clicks"), Logs(folder, "clicks")
    with config.open("a") as file:
        file.write('process: {key: primary_id, processor: "clickjoin.processors:TumblingCounts"}\n')
    for _ in range(3):
        logs.click(logs.query())
    runner({"url": live.stack.connect_url}).run(JobRun("join", str(config), "main", 1.0, "dag/run/0"), lambda _: None)
    logs.wait(0)
    return config


def test_every_job_is_asked_for() -> None:
    assert ASKED.keys() == JOBS.keys()


# By spark-submit each starts a Spark of its own; the jobs themselves are run by many tests.
@pytest.mark.parametrize("name", some(list(JOBS), len(JOBS)))
def test_every_job_runs_in_both_modes(live: Live, worked: Path, name: str) -> None:
    arguments, field = ASKED[name]
    job = JobRun(name, str(worked), "main", 1.0, f"dag/{name}/1", arguments)
    over_connect = runner({"url": live.stack.connect_url}).run(job, print)
    submitted = runner(EXTRA).run(job, print)
    assert field in submitted
    assert submitted.keys() == over_connect.keys()
