"""A Java that is not there, or does not start: one message, and exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROKEN = "#!/bin/sh\necho 'Error: no main class' >&2\nexit 1\n"


def drain(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `clickjoin drain` on a pipeline of one click, which Spark reads."""
    (folder / "logs").mkdir()
    (folder / "logs/a.jsonl").write_text('{"event_id": "10.0.0.1:1:1574562822638561"}\n')
    # Of no bytes this process reads any: Spark has to.
    (folder / "one.yaml").write_text((ROOT / "docs/one-stream.yaml").read_text() + "\nbatch: {driver_bytes: 0B}\n")
    return subprocess.run(
        [sys.executable, "-m", "clickjoin.cli", "drain", "--config", folder / "one.yaml"],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"JAVA_HOME": "/no/such"}, "JAVA_HOME is /no/such, and there is no program /no/such/bin/java"),
        ({"JAVA_HOME": "", "PATH": "/no/such"}, "there is no Java on the PATH"),
    ],
)
def test_none(tmp_path: Path, environment: dict[str, str], message: str) -> None:
    done = drain(tmp_path, **environment)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Install Java 17" in done.stderr
    assert "Traceback" not in done.stderr


def test_one_that_does_not_start(tmp_path: Path) -> None:
    java = tmp_path / "home/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text(BROKEN)
    java.chmod(0o755)
    done = drain(tmp_path, JAVA_HOME=str(java.parents[1]))
    assert done.returncode == 2
    assert f"{java}: Spark's JVM ended before it had started" in done.stderr
    assert "Traceback" not in done.stderr
