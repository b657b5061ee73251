"""A machine that lives in another time zone writes the same rows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampled import in_full

ROOT = Path(__file__).parents[2]
TESTS = ("test_engine.py", "test_rules.py::test_literals_keep_every_microsecond", "test_rules.py::test_expired")


@pytest.mark.skipif("TZ" in os.environ, reason="runs in the process that this very test starts")
@in_full
def test_in_tokyo() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *(f"tests/spark/{name}" for name in TESTS),
    ]
    env = {**os.environ, "TZ": "Asia/Tokyo"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
