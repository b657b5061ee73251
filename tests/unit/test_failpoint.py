"""Failpoints around a commit: a process is killed on the side that its environment names, or sleeps there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
from clickjoin.model.failpoint import around_commit
with around_commit("/lake/p/registry"):
    print("committed", flush=True)
print("done", flush=True)
"""


def begun(fault: str) -> subprocess.Popen[str]:
    path = os.pathsep.join(["spark_apps", os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"CLICKJOIN_FAULT": fault, "PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        ("", 0, "committed\ndone\n"),
        ("before-commit:registry", -signal.SIGKILL, ""),
        ("after-commit:registry", -signal.SIGKILL, "committed\n"),
        ("after-commit:registry_boundary", 0, "committed\ndone\n"),
        ("after-commit", 0, "committed\ndone\n"),
    ],
)
def test_killed_on_the_side_that_is_named(fault: str, code: int, said: str) -> None:
    process = begun(fault)
    assert (process.communicate()[0], process.returncode) == (said, code)


def test_asleep_until_the_file_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "asleep"
    file.touch()
    process = begun(f"before-commit:registry:{file}")
    time.sleep(1)
    assert process.poll() is None
    file.unlink()
    assert process.communicate()[0] == "committed\ndone\n"
