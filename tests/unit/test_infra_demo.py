"""infra/images/demo.py: logs are fed once, and the shipped pipeline's DAGs are switched on by Airflow's own API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError

import pytest

from images import demo

ASKED: list[tuple[str, str, Any, str | None]] = []
ANSWERS: list[int] = []  # status of the next PATCH each; 200 once there are no more


class Airflow(BaseHTTPRequestHandler):
    """A server that gives a token for the right password, and says of DAGs what a test wants."""

    def do_POST(self) -> None:
        right = self._asked() == {"username": "admin", "password": "right"} and self.path == "/auth/token"
        self._answer(201 if right else 401, {"access_token": "a token"})

    def do_PATCH(self) -> None:
        self._asked()
        self._answer(ANSWERS.pop(0) if ANSWERS else 200, {})

    def _asked(self) -> Any:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ASKED.append((self.command, self.path, body, self.headers.get("Authorization")))
        return body

    def _answer(self, status: int, body: dict[str, str]) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    ASKED.clear()
    ANSWERS.clear()
    (tmp_path / "passwords").write_text('{"admin": "right"}')
    monkeypatch.setattr(demo, "PASSWORDS", tmp_path / "passwords")
    monkeypatch.setattr("time.sleep", lambda _: None)
    with ThreadingHTTPServer(("127.0.0.1", 0), Airflow) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(demo, "AIRFLOW", f"http://127.0.0.1:{server.server_address[1]}")
        yield
        server.shutdown()


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_logs_are_fed_once(tmp_path: Path) -> None:
    wanted = {name: data for name, data in content(demo.LOGS).items() if "/" in name}
    assert demo.feed(str(tmp_path)) == len(wanted) == 8
    assert content(tmp_path) == wanted
    one = tmp_path / "clicks/men-bts.jsonl"
    one.write_bytes(b"somebody's own\n")
    (tmp_path / "clicks/men-random.jsonl").unlink()
    assert demo.feed(str(tmp_path)) == 1
    assert one.read_bytes() == b"somebody's own\n"


def test_dags_are_switched_on_once_they_are_found(airflow: None) -> None:
    ANSWERS[:] = [404, 503, 200]
    demo.switch_on("zozo")
    patched = [(path, body, token) for method, path, body, token in ASKED if method == "PATCH"]
    names = ["join", "join", "join", "retry", "gc", "verify"]
    assert patched == [
        (f"/api/v2/dags/clickjoin_{name}__zozo?update_mask=is_paused", {"is_paused": False}, "Bearer a token")
        for name in names
    ]


def test_a_refusal_is_not_waited_out(airflow: None) -> None:
    ANSWERS[:] = [403]
    with pytest.raises(HTTPError, match="403"):
        demo.switch_on("zozo")


def test_dags_that_do_not_come_are_said(
    airflow: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ANSWERS[:] = [404] * 9
    (tmp_path / "zozo.yaml").touch()
    monkeypatch.setattr(demo, "PIPELINES", tmp_path)
    monkeypatch.setattr(demo, "PATIENCE", -1.0)
    assert demo.main(str(tmp_path / "logs")) == 1
    said = capsys.readouterr()
    assert "8 files put into" in said.out
    assert "clickjoin_join__zozo is not among Airflow's DAGs" in said.err


def test_pipelines_of_ones_own_are_fed_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "PIPELINES", tmp_path)
    assert demo.main(str(tmp_path / "logs")) == 0
    assert not (tmp_path / "logs").exists()
