"""The real thing: Spark Connect and Airflow in a folder of their own, two pipelines, a lost server, a killed task.

What it tells the outside (metrics, lineage, alerts) goes to a collector in this process.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import FrameLocator, expect

from clickjoin_airflow.operator import FAILURE
from stack import ports, processes, spark
from tests.airflow.real.live import Live
from tests.airflow.real.logs import Logs, event_id
from tests.airflow.visit import CHROMIUM, Visit, browsing
from tests.sampled import in_full, some

pytestmark = [pytest.mark.airflow, pytest.mark.slow]
DONE = {"success", "failed"}


@pytest.fixture(scope="module", autouse=True)
def quiet_afterwards(live: Live) -> Iterator[None]:
    """The tests that follow have no need of these DAGs, and each that runs costs a tenth of the machine."""
    yield
    for dag in live.get("/dags?paused=false&limit=100")["dags"]:
        live.unpause(dag["dag_id"], paused=True)


def test_every_click_is_joined_and_seen(live: Live) -> None:
    late = event_id(1)  # comes after its click
    for query in [live.logs.query() for _ in range(5)]:
        live.logs.click(query)
    live.logs.click(late)
    for app in ("join", "retry"):
        live.unpause(f"clickjoin_{app}__clicks")
    live.until(lambda: len(live.logs.joined()) == 5, 240)  # the server is cold
    live.logs.query(late)
    live.logs.wait(240)

    def arrived() -> bool:
        summaries = live.summaries("clickjoin_join__clicks") + live.summaries("clickjoin_retry__clicks")
        return sum(summary["joined"] for summary in summaries) == len(live.logs.expected)

    live.until(arrived)


def test_asset_events_and_links(live: Live) -> None:
    asset = live.get("/assets?name_pattern=clicks/joined")["assets"][0]
    assert asset["uri"].endswith("/lake/clicks/joined")
    events = live.get(f"/assets/events?asset_id={asset['id']}&limit=100")["asset_events"]
    assert sum(event["extra"]["joined"] for event in events) == len(live.logs.expected)
    assert all(event["extra"]["joined"] > 0 for event in events)
    dag = "clickjoin_join__clicks"
    done = [run["dag_run_id"] for run in live.runs(dag) if run["state"] == "success"]
    run = next(run for run in done if "join 1: " in live.log(dag, run))  # the first may have given way before
    links = live.task(dag, run, "/links")["extra_links"]
    assert links["Tables"] == f"{live.stack.airflow_url}/assets?name_pattern=clicks%2Fjoined"
    assert f"/dags/{dag}/runs/" in links["Log"]


def test_the_next_task_works_before_the_one_before_has_returned(live: Live) -> None:
    def overlap() -> bool:
        begun = [run for run in live.runs("clickjoin_join__clicks") if run["start_date"]]
        runs = sorted(begun, key=lambda run: run["start_date"])
        return any(new["start_date"] < old["end_date"] for old, new in pairwise(runs) if old["end_date"])

    live.until(overlap)


def test_metrics_reach_a_collector(live: Live) -> None:
    expected = len(live.logs.expected)
    live.until(lambda: live.collector.total("airflow.clickjoin.joined", pipeline="clicks") >= expected)
    assert live.collector.total("airflow.clickjoin.joined", pipeline="clicks") == expected
    tags = [tags for tags, _, _ in live.collector.metrics["airflow.clickjoin.latency_p90"]]
    assert {"app": "join", "pipeline": "clicks", "replica": "main"} in tags
    for name in ("wasted", "pending", "quarantined", "lag_seconds", "backlog_events", "waiting"):
        assert live.collector.metrics[f"airflow.clickjoin.{name}"], name


@in_full
def test_lineage_reaches_a_collector(live: Live) -> None:
    def joined() -> list[dict[str, Any]]:
        done = [event for event in live.collector.events if event["eventType"] == "COMPLETE"]
        return [event for event in done if event["job"]["name"] == "clickjoin_join__clicks.join"]

    live.until(joined)
    tables = live.logs.lake.folder
    for event in joined():
        assert {(one["namespace"], one["name"]) for one in event["inputs"]} >= {("file", f"{tables}/foreign")}
        assert ("file", f"{tables}/joined") in {(one["namespace"], one["name"]) for one in event["outputs"]}
        assert event["job"]["namespace"] == "clickjoin-test"
    outputs = [one for event in joined() for one in event["outputs"] if one["name"].endswith("/joined")]
    rows = sum(one["outputFacets"]["outputStatistics"]["rowCount"] for one in outputs)
    assert 0 < rows <= len(live.logs.expected)


def test_a_broken_file_is_seen(live: Live) -> None:
    live.until(lambda: "half.yaml" in str(live.get("/importErrors")["import_errors"]))
    assert live.get("/dags/clickjoin_join__half")["tags"][0]["name"] == "broken"


def test_a_wrong_pipeline_fails_at_once_and_is_paused(live: Live) -> None:
    dag = "clickjoin_join__wrong"
    live.unpause(dag)
    live.until(lambda: live.get(f"/dags/{dag}")["is_paused"])
    runs = [run for run in live.runs(dag) if run["state"] in DONE]  # one that had not begun waits now
    assert {run["state"] for run in runs} == {"failed"}
    assert 3 <= len(runs) <= 5  # two may have been at work when the third had failed
    for run in runs:
        assert live.task(dag, run["dag_run_id"])["try_number"] == 1
    assert "adapter no_such_module:Adapter: cannot be imported" in live.log(dag, runs[0]["dag_run_id"])
    alert = live.until(lambda: [one for one in live.collector.alerts if one["pipeline"] == "wrong"])[0]
    assert (alert["state"], alert["job"], alert["replica"], alert["dag_id"]) == ("failed", "join", "main", dag)
    assert "adapter no_such_module:Adapter: cannot be imported" in alert["error"]
    assert f"/dags/{dag}/runs/" in alert["log_url"]


def test_a_lost_server(live: Live) -> None:
    dag, stack = "clickjoin_join__clicks", live.stack
    journal = live.logs.lake.rows("journal")
    for query in [live.logs.query() for _ in range(20)]:
        live.logs.click(query)
    live.until(lambda: live.logs.lake.rows("journal") > journal, every=0.3)  # a batch is planned
    server = next(server for server in stack.servers if server.name == spark.NAME)
    os.kill(server.pid, signal.SIGKILL)
    run = live.until(lambda: live.run_in(dag, "up_for_retry"), every=0.3)
    said = live.get(f"/dags/{dag}/dagRuns/{quote(run)}/taskInstances/join/xcomEntries/{FAILURE}")["value"]
    assert "the Spark server is lost" in said
    if CHROMIUM:
        _shown_within_a_minute(live)
    # It comes back elsewhere: tasks must read its address again.
    processes.stop([server])
    stack.servers.remove(server)
    stack.ports[spark.NAME] = ports.choose("auto", "SPARK_PORT")
    stack.servers.append(spark.start(stack.home, stack.ports[spark.NAME], stack.env))
    stack.home.write(stack.servers, stack.ports)
    live.until(lambda: spark.healthy(stack.ports[spark.NAME]))
    spark.publish(stack.home, stack.ports[spark.NAME])
    live.logs.wait(240)
    live.until(lambda: live.task(dag, run)["state"] == "success")
    assert live.task(dag, run)["try_number"] > 1
    assert "the Spark server is lost" in live.log(dag, run)
    assert any(one["state"] == "retrying" and one["run_id"] == run for one in live.collector.alerts)


def _shown_within_a_minute(live: Live) -> None:
    """The status page says that the join fails, and why it did while it waits for its next try."""
    with browsing() as browser:
        visit = Visit(browser.new_context(viewport={"width": 1280, "height": 900}).new_page(), live.stack)
        visit.log_in()
        page = visit.open("clicks")
        shown = page.locator("#dags-notices")
        expect(shown).to_contain_text(
            re.compile(r"join failed, and is (tried|under way) again \(try \d"), timeout=60_000
        )
        expect(shown).to_contain_text("the Spark server is lost", timeout=120_000)
        _has_a_dot(page, "clicks")


def _has_a_dot(page: FrameLocator, name: str) -> None:
    """Whoever looks at any pipeline sees by its tab that this one fails."""
    tab = page.locator("#pipelines a").filter(has_text=re.compile(f"^{name}$"))
    expect(tab.locator(".dot")).to_have_attribute(
        "title", re.compile(f"fails: .*clickjoin_join__{name}"), timeout=60_000
    )


def test_a_killed_task(live: Live) -> None:
    dag, logs = "clickjoin_join__long", Logs(live.stack.pipelines, "long")
    live.unpause(dag)
    run_id = live.until(lambda: live.run_in(dag, "running"))
    live.until(lambda: "replica main" in live.log(dag, run_id))
    time.sleep(3)
    path = f"/dags/{dag}/dagRuns/{quote(run_id)}/taskInstances/join"
    live.stack.api("PATCH", path, {"new_state": "failed"})
    live.until(lambda: "asked to stop" in live.log(dag, run_id), 120)
    assert live.task(dag, run_id)["state"] == "failed"
    if CHROMIUM:
        with browsing() as browser:
            visit = Visit(browser.new_context().new_page(), live.stack)
            visit.log_in()
            _has_a_dot(visit.open("clicks"), "long")
    logs.click(logs.query())
    logs.wait(240)
    live.unpause(dag, paused=True)


def test_what_is_run_by_hand(live: Live) -> None:
    """Redrive, GC, resharding and verification, while the join goes on; each returns what it did."""
    found: dict[str, Any] = {}
    orders: dict[str, dict[str, int]] = {"reshard": {"shards": 8}, "redrive": {}, "verify": {}, "gc": {"wait": 5}}
    for app, form in some(list(orders.items()), 2):
        dag = f"clickjoin_{app}__clicks"
        live.unpause(dag)
        run = live.stack.api("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": form})["dag_run_id"]
        live.until(lambda dag=dag, run=run: live.task(dag, run)["state"] in DONE, 400)
        assert live.task(dag, run)["state"] == "success", live.log(dag, run)
        found[app] = live.task(dag, run, "/xcomEntries/return_value?deserialize=true")["value"]
    assert [entry["shards"] for entry in found["reshard"]["timeline"]][-1] == 8
    assert found["verify"]["ok"] is True
    assert found.get("redrive", {"redriven": 0}) == {"redriven": 0}
    assert "gc" not in found or found["gc"]["dropped"]["registry"]["rows"] == 0
    live.logs.click(live.logs.query())
    live.logs.wait(240)


def test_a_stopped_job_leaves_the_server_free(live: Live) -> None:
    config = live.stack.pipelines / "clicks.yaml"
    command = [sys.executable, str(Path(__file__).with_name("run_endless.py")), live.stack.connect_url, str(config)]
    done = subprocess.run(command, env=live.stack.env, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
