"""A short chaos run: both replicas from the command line, six kills, GC and resharding meanwhile."""

from __future__ import annotations

from pathlib import Path

from stack import Stack
from tests.faults.chaos.run import Chaos
from tests.faults.chaos.verdict import check


def test_six_kills(tmp_path: Path, server: Stack) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    outcome = Chaos(folder, server, 7, "4m", print).run(6, airflow=False)
    print(outcome.text())
    assert not check(outcome)
    assert sum(outcome.kills.values()) == 6
