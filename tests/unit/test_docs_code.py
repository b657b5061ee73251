"""Python and settings that pages show and no other test runs, as they stand there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.configuration import conf
from opentelemetry.sdk import environment_variables as otel
from pyspark.sql import functions as F

from checks.blocks import code
from clickjoin.joiner.adapter import Adapter
from clickjoin.processors import KeyedProcessor
from clickjoin_airflow.alerts import alert
from tests.unit.processor_bench import BEGAN, MINUTE, SECOND, Driver

JOINED = pa.table({
    "event_id": ["c1", "c2"],
    "event_time": pa.array([BEGAN, BEGAN + SECOND], pa.timestamp("us", tz="UTC")),
    "primary_id": ["q1", "q2"],
    "payload": ['{"bot": true, "n": 1}', '{"n": 2}'],
    "primary": ['{"device": "mobile", "price": "1.5"}', '{"price": "2.5"}'],
})  # fmt: skip


def run(text: str, **names: Any) -> dict[str, Any]:
    module = ModuleType("of_the_docs")
    vars(module).update(names)
    exec(compile(text, "docs", "exec"), vars(module))
    return vars(module)


def test_a_dag_for_each_date() -> None:
    (text,) = code("dates.md", "python")
    dag = run(text, __name__="daily")["dag"]
    dag.get_task("report")


def test_adapters() -> None:
    first, both = code("adapters.md", "python", 2)
    names = run(first)
    found = names["Mobile"]().merge_table(JOINED)
    assert found.column_names == ["event_id", "event_time", "foreign_record", "primary_record"]
    assert found["event_id"].to_pylist() == ["c1"]
    before, now = both.split("\n\n\n")
    assert issubclass(run(before, Adapter=Adapter, F=F)["Priced"], Adapter)
    names = run(now, **{name: names[name] for name in ("json", "pa", "ArrowAdapter")})
    rows = names["Priced"]().merge_table(JOINED)
    assert rows.select(["event_id", "price"]).to_pylist() == [{"event_id": "c2", "price": 2.5}]


def test_a_processor() -> None:
    (text,) = code("processing.md", "python")
    firsts = run(text)["Firsts"]
    assert issubclass(firsts, KeyedProcessor)
    driver = Driver(firsts())
    driver.batch([("hats", BEGAN + SECOND), ("shoes", BEGAN)], BEGAN + MINUTE)
    driver.batch([("hats", BEGAN + MINUTE)], BEGAN + 2 * MINUTE)
    assert sorted(signal[:2] for signal in driver.signals) == [("hats", "first"), ("shoes", "first")]


@pytest.fixture
def chat() -> Iterator[tuple[str, list[Any]]]:
    """A server that takes what is posted: its address, and what came."""
    came: list[Any] = []

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Takes)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", came
    server.shutdown()
    server.server_close()


def test_an_alert(chat: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT_HOOK", chat[0])
    (text,) = code("observability.md", "python")
    task = SimpleNamespace(dag_id="clickjoin_join__shop", task_id="join", run_id="r", try_number=1, log_url="http://x")
    run(text)["page"](alert({"ti": task, "exception": ValueError("e")}, "failed"))
    assert chat[1] == [{"text": "shop join failed: e\nhttp://x"}]


def test_settings_are_those_that_are_read() -> None:
    lines = "".join(code("observability.md", "sh", 2)).splitlines()
    assert len(lines) == 6
    for line in lines:
        name, _, value = line.partition("=")
        section = re.fullmatch(r"AIRFLOW__([A-Z]+)__(\w+)", name)
        if section and section[1] != "OPENLINEAGE":
            assert conf.has_option(section[1].lower(), section[2].lower()), name
        elif section:
            assert section[2] in {"TRANSPORT", "NAMESPACE"}
            assert not value.startswith("{") or json.loads(value)["type"] == "http"
        else:
            assert name in vars(otel), name
