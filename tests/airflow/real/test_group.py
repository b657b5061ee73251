"""A group's task: its pipelines are joined side by side and handed over, and one that fails leaves others alone."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.airflow.real.live import Live
from tests.airflow.real.logs import Logs
from tests.sampled import in_full

pytestmark = [pytest.mark.airflow, pytest.mark.slow]
DAG = "clickjoin_join_group__pair"


@in_full
def test_a_group_is_joined_and_handed_over(live: Live) -> None:
    """The logs of `lost` are not there: it is named at the end of each run, and the others' output is announced."""
    folder = live.stack.pipelines
    both = {name: Logs(folder, name) for name in ("left", "right")}
    live.unpause(DAG)
    for _ in range(3):
        for logs in both.values():
            for query in [logs.query() for _ in range(3)]:
                logs.click(query)
        begun = len(live.runs(DAG))
        for logs in both.values():
            logs.wait(240)
        live.until(lambda begun=begun: len(live.runs(DAG)) > begun)  # one has begun while another works
    ended = live.until(lambda: [run for run in live.runs(DAG) if run["state"] == "failed"])
    live.unpause(DAG, paused=True)
    run = ended[0]["dag_run_id"]
    value = live.task(DAG, run, "/xcomEntries/return_value?deserialize=true")["value"]
    assert set(value["failed"]) == {"lost"}
    assert {"left", "right"} <= set(value["known"])
    task = live.get(f"/dags/{DAG}/dagRuns/{quote(run)}/taskInstances/failed")
    said = live.get(f"/dags/{DAG}/dagRuns/{quote(run)}/taskInstances/failed/logs/{task['try_number']}")
    assert "lost-logs" in str(said["content"])
    for name, logs in both.items():
        asset = live.get(f"/assets?name_pattern={name}/joined")["assets"][0]
        events = live.get(f"/assets/events?asset_id={asset['id']}&limit=100")["asset_events"]
        assert 0 < sum(event["extra"]["joined"] for event in events) <= len(logs.expected)
