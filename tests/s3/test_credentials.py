"""Credentials of a role: they run out while a pipeline runs, and whoever gives them out has new ones by then."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable

from clickjoin.generate import Traffic, generate
from clickjoin.lake.objects import make_client
from clickjoin.model.places import store_of
from stack.gateway import Gateway
from tests.oracle import examine
from tests.s3.places import asking
from tests.sampled import in_full

BUCKET, CLICKS, PARTS, LIVES = "roles", 8000, 8, 75.0  # seconds that credentials live
_LIST = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


class Role:
    """Gives out credentials as a container's agent does; each pair is unknown to the store once its time is over."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._known = gateway, list[tuple[str, float]]()
        self.asked, self.given = 0, 0
        role = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = role.current()
                if "python" in (self.headers["User-Agent"] or "python").lower():
                    found["Token"] = ""  # it wants one; the server knows no tokens, and the others then send none
                data = json.dumps(found).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._lock, self._pair = threading.Lock(), ("", "", 0.0)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/role"

    def current(self) -> dict[str, str]:
        """Those of now; new ones once half of their time is over."""
        with self._lock:
            self.asked += 1
            if time.time() > self._pair[2] - LIVES / 2:
                self._pair = (f"role{secrets.token_hex(6)}", secrets.token_urlsafe(24), time.time() + LIVES)
                self._gateway.add_user(*self._pair[:2])
                self._known.append((self._pair[0], self._pair[2]))
                self.given += 1
            key, secret, end = self._pair
        said = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"AccessKeyId": key, "SecretAccessKey": secret, "Expiration": said}

    def expire(self) -> int:
        """Have the store forget those whose time is over; how many are left."""
        with self._lock:
            for key, end in [*self._known]:
                if time.time() > end:
                    self._gateway.remove_user(key)
                    self._known.remove((key, end))
            return len(self._known)

    def stop(self) -> None:
        """Give out no more."""
        self._server.shutdown()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A server of its own, which knows users."""
    server = Gateway(tmp_path / "s3", users=True)
    server.bucket(BUCKET)
    server.start()
    yield server
    server.kill()


def pipeline(folder: Path) -> Path:
    """Lake and logs in the bucket."""
    stream = {"event_id": "event_id", "event_time": "embedded"}
    logs = {name: {"kind": "files", "path": f"s3://{BUCKET}/logs/{name}/*"} for name in ("queries", "clicks")}
    whole = {
        "pipeline": "role",
        "engine": "arrow",
        "lake": f"s3://{BUCKET}/lake",
        "primary": {**stream, "source": logs["queries"]},
        "foreign": {**stream, "source": logs["clicks"], "primary_id": "query_id", "primary_time": "embedded"},
        "retry": {"first_delay": "5s", "max_delay": "5s", "max_attempts": 100},
        "batch": {"driver_bytes": "20KB"},  # by Spark's workers, some of them
    }
    file = folder / "role.yaml"
    file.write_text(yaml.safe_dump(whole), encoding="utf-8")
    return file


def feed(gateway: Gateway, folder: Path, part: int) -> None:
    """One part of the traffic: an object of each stream."""
    with asking(gateway):
        s3 = make_client(store_of("s3://any"))
        for name in ("queries", "clicks"):
            path = sorted((folder / name).iterdir())[part]
            s3.put_object(Bucket=BUCKET, Key=f"logs/{name}/{path.name}", Body=path.read_bytes())
        s3.close()


def joined(gateway: Gateway) -> int:
    """Rows of the output, as they lie on the server's disk."""
    place = gateway.folder / "data" / BUCKET / "lake/role/joined"
    return int(DeltaTable(place).to_pyarrow_dataset().count_rows()) if (place / "_delta_log").exists() else 0


def grows(gateway: Gateway, role: Role, run: subprocess.Popen[bytes], least: int, log: Path) -> int:
    """Wait until there are more rows than so many."""
    until = time.monotonic() + 120
    while (now := joined(gateway)) <= least:
        assert run.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < until, log.read_text()[-3000:]
        role.expire()
        time.sleep(0.5)
    return now


@in_full
def test_they_run_out_and_it_goes_on(gateway: Gateway, tmp_path: Path) -> None:
    """Through one process: log copies, delta-rs, Arrow, Spark and its workers; no pair of keys lives to the end."""
    traffic = tmp_path / "traffic"
    generate(traffic, Traffic(clicks=CLICKS, queries=CLICKS // 2, orphans=0, broken=0, files=PARTS, start=None))
    role, log = Role(gateway), tmp_path / "log"
    where = {name: value for name, value in gateway.environment().items() if name not in _LIST}
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | where
    env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = role.url
    line = [str(Path(sys.executable).with_name("clickjoin")), "run", "--config", str(pipeline(tmp_path))]
    with log.open("wb") as out, subprocess.Popen(line, env=env, stdout=out, stderr=out) as run:
        try:
            rows = 0
            for part in range(PARTS):
                feed(gateway, traffic, part)
                rows = grows(gateway, role, run, rows, log)
                until = time.monotonic() + LIVES / 2.5
                while time.monotonic() < until and part < PARTS - 1:
                    role.expire()
                    time.sleep(0.5)
            while rows < CLICKS:  # what waits for a query of a later part
                rows = grows(gateway, role, run, rows, log)
        finally:
            run.terminate()
            run.wait(60)
            role.stop()
    logs = gateway.folder / "data" / BUCKET / "logs"
    verdict = examine(f"{logs}/clicks/*", f"{logs}/queries/*", gateway.folder / "data" / BUCKET / "lake/role")
    assert verdict.ok, verdict.text()
    assert (verdict.joined, role.given >= 4) == (CLICKS, True)
    assert "batch failed" not in log.read_text()
