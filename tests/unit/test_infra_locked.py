"""Airflow on SQLite: what is done where its database was locked just then."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.error import HTTPError

import pytest

from bootstrap import Problem
from demo.backfill import ATTEMPTS, backfill
from stack import Stack
from stack import stack as module

OLD, NEW = "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"


class Handler(BaseHTTPRequestHandler):
    """Gives a token, then the statuses that are left, then 200."""

    left: ClassVar[list[int]] = []
    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        token = self.path == "/auth/token"
        status = 200 if token or not self.left else self.left.pop(0)
        if not token:
            self.asked.append(self.path)
        body = json.dumps({"access_token": "t", "status": status}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """A stack whose Airflow is a server here."""
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    Handler.left, Handler.asked = [], []
    made = Stack(tmp_path / "home", spark_connect=False)
    made.home.make()
    made.home.passwords.parent.mkdir(parents=True, exist_ok=True)
    made.home.passwords.write_text('{"admin": "x"}')
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.ports = {"airflow": server.server_port}
        yield made
        server.shutdown()


@pytest.mark.parametrize(("statuses", "asked"), [([], 1), ([500], 2), ([500] * 5, 6)])
def test_the_api_is_asked_again(stack: Stack, statuses: list[int], asked: int) -> None:
    Handler.left = statuses
    assert stack.api("POST", "/x")["status"] == 200
    assert Handler.asked == ["/api/v2/x"] * asked


@pytest.mark.parametrize(("statuses", "asked"), [([404], 1), ([409], 1), ([500] * 9, 6)])
def test_what_is_said_is_not_asked_again(stack: Stack, statuses: list[int], asked: int) -> None:
    Handler.left = statuses
    with pytest.raises(HTTPError):
        stack.api("POST", "/x")
    assert len(Handler.asked) == asked


class Airflow:
    """Backfills of one DAG: `create` is locked so often, each time after it has written a backfill without runs."""

    def __init__(self, folder: Path, locked: int) -> None:
        self.env = {"PATH": f"{folder}:/usr/bin:/bin", "MADE": str(folder / "made"), "LOCKED": str(locked)}
        self.made, self.cancelled = folder / "made", list[str]()
        (folder / "airflow").write_text(
            "#!/bin/sh\n"
            'if [ "$(cat "$MADE" 2>/dev/null | wc -l)" -ge "$LOCKED" ]; then echo whole >> "$MADE"; exit 0; fi\n'
            'echo half >> "$MADE"; echo "sqlite3.OperationalError: database is locked" >&2; exit 1\n'
        )
        (folder / "airflow").chmod(0o755)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        if method == "PUT":
            self.cancelled.append(path)
        if "/dagRuns" in path:  # one of an older backfill, and its own
            return {"dag_runs": [{"state": "failed", "queued_at": OLD}, {"state": "success", "queued_at": NEW}]}
        kinds = self.made.read_text().split()
        done = kinds[-1] == "whole" or f"/backfills/{len(kinds)}/cancel" in self.cancelled
        return {"backfills": [{"id": len(kinds), "created_at": NEW, "completed_at": NEW if done else None}]}


def until(what: Any) -> None:
    while not what():
        pass


def test_a_backfill_that_was_cut_in_half_is_withdrawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    airflow: Any = Airflow(tmp_path, locked=2)
    monkeypatch.setenv("PATH", airflow.env["PATH"])
    assert backfill(airflow, "d", ("2026-03-01",), until) == ["success"]  # and not what an older backfill ran
    assert airflow.cancelled == ["/backfills/1/cancel", "/backfills/2/cancel"]
    assert airflow.made.read_text().split() == ["half", "half", "whole"]


def test_a_database_that_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    airflow: Any = Airflow(tmp_path, locked=ATTEMPTS)
    monkeypatch.setenv("PATH", airflow.env["PATH"])
    with pytest.raises(Problem, match="database is locked"):
        backfill(airflow, "d", ("2026-03-01",), until)
    assert airflow.made.read_text().split() == ["half"] * ATTEMPTS
