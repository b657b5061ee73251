"""What tasks tell the outside, without a server: names of tables, when alerts go out, metrics that fail nothing."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from airflow.providers.openlineage.extractors import OperatorLineage
from airflow.sdk import Asset

from clickjoin.jobs.all_jobs import JOBS
from clickjoin_airflow import ClickjoinOperator, alerts, metrics
from clickjoin_airflow.lineage import place


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ("/lake/shop", ("file", "/lake/shop/joined")),
        ("file:///lake/shop", ("file", "/lake/shop/joined")),
        ("s3://bucket/lake/shop", ("s3://bucket", "lake/shop/joined")),
    ],
)
def test_how_a_table_is_named(tables: str, expected: tuple[str, str]) -> None:
    assert place(tables, "joined") == expected


@pytest.mark.parametrize("job", JOBS)
def test_each_job_names_its_tables(job: str) -> None:
    task = ClickjoinOperator(task_id=job, job=job, config="x.yaml", tables="/lake/shop")
    found: OperatorLineage[Any, Any] = task.get_openlineage_facets_on_start()
    assert found.inputs
    assert [one.name for one in found.inputs] == [f"/lake/shop/{name}" for name in JOBS[job].reads]
    assert [one.name for one in found.outputs] == [f"/lake/shop/{name}" for name in JOBS[job].writes]
    assert not any(output.outputFacets for output in found.outputs)


def test_an_upstreams_output_is_an_input() -> None:
    upstream = Asset(name="shop/joined", uri="file:///lake/shop/joined")
    task = ClickjoinOperator(task_id="join", job="join", config="x.yaml", tables="/lake/sales", inlets=[upstream])
    found: OperatorLineage[Any, Any] = task.get_openlineage_facets_on_start()
    assert [(one.namespace, one.name) for one in found.inputs][-1] == ("file", "/lake/shop/joined")


def context(number: int = 1, error: BaseException | None = None) -> dict[str, Any]:
    """As far as an alert needs it."""
    ti = SimpleNamespace(
        dag_id="clickjoin_join__shop", run_id="r", task_id="join", try_number=number, log_url="http://x"
    )
    task = SimpleNamespace(job="join", replica="west", tables="/lake/shop")
    return {"ti": ti, "task": task, "exception": error}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    module = ModuleType("a_users_hook")
    module.tell = found.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_users_hook", module)
    monkeypatch.setenv("CLICKJOIN_ALERT", "a_users_hook:tell")
    return found


def test_an_alert_is_plain(sent: list[dict[str, Any]]) -> None:
    alerts.failed(context(3, ValueError("no such column")))
    (alert,) = sent
    assert alert.pop("at").endswith("+00:00")
    assert alert == {
        "state": "failed", "pipeline": "shop", "job": "join", "replica": "west", "tables": "/lake/shop",
        "error": "no such column", "dag_id": "clickjoin_join__shop", "run_id": "r", "task_id": "join",
        "try_number": 3, "log_url": "http://x",
    }  # fmt: skip


def test_retries_alert_less_and_less(sent: list[dict[str, Any]]) -> None:
    for number in range(1, 101):
        alerts.retrying(context(number))
    assert [alert["try_number"] for alert in sent] == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("name", ["a_users_hook:nothing", "no_such_module:tell", "a_users_hook", ""])
def test_a_broken_hook_changes_nothing(sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("CLICKJOIN_ALERT", name)
    monkeypatch.setenv("AIRFLOW_VAR_CLICKJOIN_ALERT", "")
    alerts.failed(context())
    assert sent == []


def test_the_hook_by_variable(sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLICKJOIN_ALERT")
    monkeypatch.setenv("AIRFLOW_VAR_CLICKJOIN_ALERT", "a_users_hook:tell")
    alerts.failed(context())
    assert len(sent) == 1


def test_metrics_fail_no_task() -> None:
    metrics.emit("join", "shop", "main", {"joined": -1, "latency_p90": None, "problems": [], "ok": True})
