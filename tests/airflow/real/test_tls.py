"""Spark Connect as the containers offer it: behind TLS, to who trusts its certificate and has the token."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bootstrap import INFRA
from images import make_secrets
from stack import ports
from tests.airflow.real.live import Live

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy"),
]
ASK = "import sys; from clickjoin.spark.session import connect; print(connect(sys.argv[1]).range(7).count())"


@pytest.fixture(scope="module")
def ask(live: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Asks the stack's Spark for a number, through the proxy of the containers, with a token and roots to trust."""
    folder, port = tmp_path_factory.mktemp("tls"), ports.choose("auto", "TLS")
    key, public = make_secrets.certificate("localhost")
    (folder / "connect.pem").write_text(public + key)
    (folder / "roots.pem").write_text(public)
    text = (INFRA / "images/haproxy.cfg").read_text()
    for here, there in {
        "/run/clickjoin": str(folder), ":15443": f"127.0.0.1:{port}", ":15002": f":{live.stack.ports['spark']}"
    }.items():  # fmt: skip
        assert here in text
        text = text.replace(here, there)
    (folder / "haproxy.cfg").write_text(text)

    def call(token: str, roots: Path | None = folder / "roots.pem") -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(roots)} if roots else dict(os.environ)
        url = f"sc://localhost:{port}/;use_ssl=true;token={token}"
        command = [sys.executable, "-c", ASK, url]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)

    proxy = subprocess.Popen(["haproxy", "-f", folder / "haproxy.cfg"])
    try:
        for _ in range(50):
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        yield call
    finally:
        proxy.terminate()
        proxy.wait(10)


def test_who_trusts_it_and_has_the_token_is_served(live: Live, ask: Callable[..., Any]) -> None:
    token = live.stack.connect_url.partition("token=")[2]
    done = ask(token)
    assert (done.returncode, done.stdout.strip()) == (0, "7"), done.stderr[-2000:]


def test_no_one_else_is(live: Live, ask: Callable[..., Any]) -> None:
    token = live.stack.connect_url.partition("token=")[2]
    for tried in (ask("another"), ask(token, roots=None)):
        assert tried.returncode != 0
        assert "no Spark Connect server answers" in tried.stderr
