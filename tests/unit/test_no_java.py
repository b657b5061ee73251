"""Few records are joined, tried again and counted without Spark: no Java is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

SECOND = 1_772_366_400
ROOT = Path(__file__).parents[2]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """One in which whoever starts Java leaves a mark, and gets none."""
    folder = tmp_path / "bin"
    folder.mkdir()
    java = folder / "java"
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/java-was-started\nexit 1\n")
    java.chmod(0o755)
    paths = f"{ROOT / 'spark_apps'}:{ROOT / 'infra'}"
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "JAVA_HOME": str(tmp_path), "PYTHONPATH": paths}


def event(host: int, second: int) -> str:
    return f"10.0.0.{host}:1:{(SECOND + second) * 1_000_000}"


def drained(folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    code = "from clickjoin.cli.main import main; main()"
    command = [sys.executable, "-c", code, "drain", "--config", "p.yaml", "--json"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout))


def test_ten_lines(tmp_path: Path, environment: dict[str, str]) -> None:
    side = {"event_id": "id", "event_time": "embedded"}
    config = {
        "pipeline": "p", "engine": "arrow",
        "lake": "lake",
        "primary": {"source": {"kind": "files", "path": "queries/*"}, **side},
        "foreign": {
            "source": {"kind": "files", "path": "clicks/*"}, **side, "primary_id": "query", "primary_time": "embedded",
        },
        "retry": {"first_delay": "0s"},
        "registry": {"retention": "36500d"},
    }  # fmt: skip
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(config))
    for name in ("queries", "clicks"):
        (tmp_path / name).mkdir()
    queries = [json.dumps({"id": event(1, number)}) for number in range(9)]
    clicks = [json.dumps({"id": event(2, number + 1), "query": event(1, number)}) for number in range(10)]
    (tmp_path / "queries/a.jsonl").write_text("\n".join(queries) + "\n")
    (tmp_path / "clicks/a.jsonl").write_text("\n".join([*clicks, clicks[0], "{broken"]) + "\n")
    first = drained(tmp_path, environment)
    wanted = {"accepted": 10, "joined": 9, "pending": 1, "repeats": 1, "foreign_quarantined": 1, "agree": True}
    assert {name: first["accounts"][name] for name in wanted} == wanted
    (tmp_path / "queries/b.jsonl").write_text(json.dumps({"id": event(1, 9)}) + "\n")
    second = drained(tmp_path, environment)
    assert (second["accounts"]["joined"], second["accounts"]["pending"]) == (10, 0)
    assert not (tmp_path / "java-was-started").exists()
