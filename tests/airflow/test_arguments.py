"""What an app takes besides its lease: from a templated task to a command line; and what a bad summary does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from jinja2.sandbox import SandboxedEnvironment
from structlog.testing import capture_logs

from clickjoin.config import load
from clickjoin.engines.arrow import ArrowTables
from clickjoin.jobs.all_jobs import JOBS
from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import EPOCH
from clickjoin.registry.shards import fixed
from clickjoin.schemas import ALL
from clickjoin_airflow import ClickjoinOperator, defaults, operator
from clickjoin_airflow.dates import DateCompleteSensor
from clickjoin_airflow.job import JobRun
from clickjoin_airflow.pipelines import BrokenFile
from clickjoin_airflow.submit import Submit

JOB = JobRun("verify", "/p.yaml", "main", None, "tag")


def test_templates_become_plain_values() -> None:
    verify, reshard, gc = JOBS["verify"], JOBS["reshard"], JOBS["gc"]
    assert verify.parse({"since": "None", "until": "", "repair": "True", "remove_doubles": "False"}) == {
        "repair": True, "remove_doubles": False,
    }  # fmt: skip
    assert reshard.parse({"shards": "-12", "since": "2026-03-01T00:00:00Z"}) == {
        "shards": -12, "since": "2026-03-01T00:00:00Z",
    }  # fmt: skip
    assert gc.parse({"wait": 1.5, "dry_run": True}) == {"wait": 1.5, "dry_run": True}
    assert gc.parse({"wait": "0.5"}) == {"wait": 0.5}
    assert JOBS["backfill"].parse({"primary": "2024"}) == {"primary": "2024"}


@pytest.mark.parametrize(("arguments", "words"), [
    ({"wait": "soon"}, "wait: 'soon' is no float"), ({"dry_run": "maybe"}, "dry_run: 'maybe' is no bool"),
    ({"waits": 1}, "job gc takes no 'waits'. It takes: dry_run, wait, lake_exists"),
])  # fmt: skip
def test_what_a_job_does_not_take(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        JOBS["gc"].parse(arguments)


@pytest.mark.parametrize(
    ("changes", "tail"),
    [
        ({}, []),
        ({"lease": 2.0}, ["2.0"]),
        ({"arguments": {"repair": True}}, ["", '{"repair": true}']),
        ({"lease": 2.0, "arguments": {"a": "b c"}}, ["2.0", '{"a": "b c"}']),
    ],
)
def test_spark_submit_gets_them_last(changes: dict[str, Any], tail: list[str]) -> None:
    runner = Submit({"spark_submit": "/bin/true", "jars": "a.jar"})
    command = runner.command(replace(JOB, **changes), Path("spark.properties"))
    assert command[command.index("/p.yaml") :] == ["/p.yaml", "main", *tail]


@pytest.mark.parametrize(("job", "before", "begun"), [
    ("join", "2026-03-01T00:00:00Z", True), ("join", None, False), ("retry", "2026-03-01T00:00:00Z", True),
    ("gc", "2026-03-01T00:00:00Z", True), ("verify", "2026-03-01T00:00:00Z", True), ("verify", None, False),
    ("quality", "2026-03-01T00:00:00Z", None),
])  # fmt: skip
def test_what_has_worked_before_begins_no_lake(job: str, before: str | None, begun: bool | None) -> None:
    ti = SimpleNamespace(dag_id="d", run_id="r", try_number=1)
    task = ClickjoinOperator(task_id="t", job=job, config="/p.yaml")
    run = task._run({"ti": ti, "prev_start_date_success": before})
    assert run.arguments == ({} if begun is None else {"lake_exists": begun})


def test_what_a_pipelines_file_says_is_no_template() -> None:
    """`lake` of a file is text: somebody who may write one must not read variables and connections by it."""
    assert not {"config", "tables"} & {*ClickjoinOperator.template_fields, *DateCompleteSensor.template_fields}
    lake = "/{{ var.value.get('key') }}/{% raw %}"
    task = ClickjoinOperator(task_id="t", job="gc", config=lake, tables=lake, arguments={"wait": "{{ params.wait }}"})
    given = "{{ var.value.get('key') }}"  # by a form: rendered once, and not what comes of it
    task.render_template_fields({"params": {"wait": given}}, jinja_env=SandboxedEnvironment())
    assert (task.config, task.tables, task.arguments) == (lake, lake, {"wait": given})


def test_what_is_wrong_in_a_file_is_shown_as_it_is() -> None:
    broken = BrokenFile("b", Path("b.yaml"), "b.yaml: one\r# two\u2028<b>three</b>\n{{ 1 }} is in other.md")
    made = defaults.placeholder("join", broken)
    title, empty, *lines = (made.doc_md or "").splitlines()
    assert (title, empty, len(lines)) == ("### This pipeline's file cannot be read", "", 4)
    assert all(line.startswith("    ") for line in lines)


@pytest.mark.parametrize("ok", [True, False])
def test_a_summary_that_is_not_well_fails_for_good(monkeypatch: pytest.MonkeyPatch, ok: bool) -> None:
    ran, pushed = [], {}
    summary = {"ok": ok, "verdict": "2 lost"}
    extra = SimpleNamespace(extra_dejson={}, host=None, port=None, password=None)
    monkeypatch.setattr(operator.Connection, "get", lambda _: extra)
    monkeypatch.setattr(
        operator, "runner", lambda _: SimpleNamespace(run=lambda run, report: ran.append(run) or summary)
    )
    task = ClickjoinOperator(task_id="verify", job="verify", config="/p.yaml", arguments={"repair": "True"})
    task.operator_extra_links = ()
    ti = SimpleNamespace(
        dag_id="d", run_id="r", try_number=1, xcom_push=lambda key, value: pushed.update({key: json.dumps(value)})
    )
    if ok:
        assert task.execute({"ti": ti}) == summary
        assert pushed == {}
    else:
        with pytest.raises(AirflowFailException, match="2 lost"):
            task.execute({"ti": ti})
        assert pushed == {"return_value": json.dumps(summary)}
    assert ran == [replace(JOB, tag="d/r/1", arguments={"repair": True, "lake_exists": False})]


def test_a_task_says_in_its_log_what_its_job_did(
    monkeypatch: pytest.MonkeyPatch, write_pipeline: Callable[..., Path], tmp_path: Path
) -> None:
    """Of a job that runs without Spark, on real tables."""
    monkeypatch.setenv("AIRFLOW_CONN_CLICKJOIN_SPARK", '{"conn_type": "generic", "extra": {"url": "sc://nowhere"}}')
    file = write_pipeline(tmp_path, "shop")
    delta = ArrowTables(f"{tmp_path}/lake/shop")
    for table in ALL:
        delta.create(table)
    entry = {"from_time": EPOCH, "shards": 4, "added_at": datetime(2026, 3, 1, tzinfo=UTC), **fixed(load(file))}
    delta.append("shard_timeline", [entry])
    task = ClickjoinOperator(task_id="t", job="reshard", config=str(file), tables=delta.path("joined"))
    task.operator_extra_links = ()
    with capture_logs() as said:
        task.execute({"ti": SimpleNamespace(dag_id="d", run_id="r", try_number=1)})
    lines = [one["event"] % one.get("positional_args", ()) for one in said]
    assert "reshard: done" in lines
    assert any(line.startswith("- timeline: since 1970-01-01") and "shards 4" in line for line in lines)
