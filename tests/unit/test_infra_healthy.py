"""What Docker asks a container: good only if the part in question works."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

import pytest

from images import healthy, make_secrets

WELL = {"metadatabase": {"status": "healthy"}, "scheduler": {"status": "healthy"}, "dag_processor": {"status": None}}


class Health(BaseHTTPRequestHandler):
    """Airflow's own answer."""

    def do_GET(self) -> None:
        body = json.dumps(WELL).encode()
        self.send_response(200 if self.path == "/api/v2/monitor/health" else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def serving(server: Any) -> Iterator[int]:
    with server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for port in serving(ThreadingHTTPServer(("127.0.0.1", 0), Health)):
        monkeypatch.setattr(healthy, "AIRFLOW", f"http://127.0.0.1:{port}")
        yield


@pytest.mark.usefixtures("airflow")
def test_airflows_parts() -> None:
    assert [healthy.main(part) for part in ("api-server", "scheduler", "dag_processor", "triggerer")] == [0, 0, 1, 1]


def test_no_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healthy, "AIRFLOW", "http://127.0.0.1:9")
    assert healthy.main("scheduler") == 1


class Tls(BaseRequestHandler):
    """What stands before Spark: a handshake."""

    context: ssl.SSLContext

    def handle(self) -> None:
        with suppress(OSError):
            self.context.wrap_socket(self.request, server_side=True).close()


@pytest.mark.parametrize(("protocol", "spark", "code"), [("h2", True, 0), ("http/1.1", True, 1), ("h2", False, 1)])
def test_connect_needs_spark_and_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, spark: bool, code: int
) -> None:
    (tmp_path / "both.pem").write_text("".join(make_secrets.certificate("spark")))
    Tls.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    Tls.context.load_cert_chain(tmp_path / "both.pem")
    Tls.context.set_alpn_protocols([protocol])
    for port in serving(ThreadingTCPServer(("127.0.0.1", 0), Tls)):
        monkeypatch.setattr(healthy, "CONNECT", port)
        monkeypatch.setattr(healthy, "SPARK", port if spark else 9)
        assert healthy.main("connect") == code


@pytest.mark.parametrize("script", ["entrypoint.sh", "spark-connect.sh", "spark-node.sh", "s3.sh"])
def test_scripts_are_sound(script: str) -> None:
    file = Path(healthy.__file__).with_name(script)
    shell = file.read_text().splitlines()[0].removeprefix("#!")
    assert subprocess.run([shell, "-n", file]).returncode == 0
    assert file.stat().st_mode & 0o111


def test_a_port_that_listens_and_one_that_something_is_linked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        assert [healthy.main("listens", port), healthy.main("linked", port)] == [0, 1]
        with socket.create_connection(server.getsockname()):
            assert healthy.main("linked", port) == 0
    assert healthy.main("listens", port) == 1
