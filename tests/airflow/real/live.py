"""A running stack, and what a user does with it through Airflow's API."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote

from bootstrap import ROOT

if TYPE_CHECKING:
    from stack import Stack
    from tests.airflow.real.collector import Collector
    from tests.airflow.real.logs import Logs

LEASE = 15  # seconds: each task that begins costs a slow machine ten of its own


class Live:
    """A running stack, and what a user does with it."""

    def __init__(self, stack: Stack, logs: Logs, collector: Collector) -> None:
        self.stack = stack
        self.logs = logs
        self.collector = collector

    def until(self, what: Callable[[], Any], seconds: float = 240, every: float = 1.0) -> Any:
        """Ask so often until it holds; each look is a request or some dozens, which the same two cores answer."""
        deadline = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < deadline, f"not within {seconds} s"
            time.sleep(every)
        return found

    def get(self, path: str) -> Any:
        return self.stack.api("GET", path)

    def unpause(self, dag: str, *, paused: bool = False) -> None:
        def done() -> bool:
            try:
                return bool(self.stack.api("PATCH", f"/dags/{dag}", {"is_paused": paused}))
            except HTTPError:
                return False

        self.until(done)

    def runs(self, dag: str) -> list[dict[str, Any]]:
        return list(self.get(f"/dags/{dag}/dagRuns?limit=100&order_by=id")["dag_runs"])

    def run_in(self, dag: str, state: str) -> str | None:
        """A run whose task is in the state."""
        ids = [run["dag_run_id"] for run in self.runs(dag)]
        return next((run for run in ids if self.task(dag, run)["state"] == state), None)

    def task(self, dag: str, run: str, rest: str = "") -> Any:
        return self.get(f"/dags/{dag}/dagRuns/{quote(run)}/taskInstances/{dag.split('_')[1]}{rest}")

    def summaries(self, dag: str) -> list[dict[str, Any]]:
        """What the tasks of the runs that succeeded returned."""
        ids = [run["dag_run_id"] for run in self.runs(dag) if run["state"] == "success"]
        return [self.task(dag, run, "/xcomEntries/return_value?deserialize=true")["value"] for run in ids]

    def log(self, dag: str, run: str, number: int = 1) -> str:
        return str(self.task(dag, run, f"/logs/{number}")["content"])


def reporting_to(collector: Collector) -> dict[str, str]:
    """Settings that send everything to the collector (docs/observability.md)."""
    return {
        "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("spark_apps", "plugins", "")),
        "AIRFLOW__METRICS__OTEL_ON": "True",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRIC_EXPORT_INTERVAL": "5000",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "http", "url": collector.url}),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "clickjoin-test",
        "CLICKJOIN_ALERT": "tests.airflow.real.hook:tell",
        "TELL_URL": f"{collector.url}/alert",
    }
