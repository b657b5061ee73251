"""Prometheus rules and the Grafana dashboard name metrics that tasks emit, and PromQL that Prometheus reads."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "infra/monitoring/prometheus-rules.yaml"
DASHBOARD = json.loads((ROOT / "infra/monitoring/grafana-dashboard.json").read_text())
SOURCE = (ROOT / "plugins/clickjoin_airflow/metrics.py").read_text()
EMITTED = {
    name: set(re.findall(r'"(\w+)"', SOURCE.split(f"{name} = (")[1].split(")")[0])) for name in ("COUNTERS", "GAUGES")
}
KNOWN = {f"airflow_clickjoin_{name}_total" for name in EMITTED["COUNTERS"]} | {
    f"airflow_clickjoin_{name}" for name in EMITTED["GAUGES"]
}


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return panels + [rule["expr"] for rule in rules()]


def test_every_metric_is_one_that_tasks_emit() -> None:
    assert EMITTED["COUNTERS"] > {"joined", "batches"}
    assert EMITTED["GAUGES"] > {"lag_seconds"}
    named = {name for text in expressions() for name in re.findall(r"airflow_clickjoin_\w+", text)}
    assert named <= KNOWN
    shown = {name for panel in DASHBOARD["panels"] for target in panel["targets"]
             for name in re.findall(r"airflow_clickjoin_\w+", target["expr"])}  # fmt: skip
    assert shown == KNOWN  # nothing that is emitted is left out


def test_every_alert_says_what_to_do() -> None:
    for rule in rules():
        assert set(rule["annotations"]) == {"summary", "remedy"}, rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(places)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_prometheus_reads_them(tmp_path: Path) -> None:
    panels = [re.sub(r"\$\w+", "x", text) for text in expressions()]
    made = {
        "groups": [{"name": "panels", "rules": [{"record": f"p{at}", "expr": text} for at, text in enumerate(panels)]}]
    }
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump(made))
    for file in (RULES, tmp_path / "panels.yaml"):
        run = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
