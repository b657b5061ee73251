"""A short chaos run: both replicas from the command line, a few kills, GC and resharding meanwhile."""

from __future__ import annotations

from pathlib import Path

from stack import Stack
from tests.faults.chaos.run import Chaos
from tests.faults.chaos.verdict import check
from tests.sampled import some

KILLS = len(some(range(6), 2))


def test_some_kills(tmp_path: Path, server: Stack) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    outcome = Chaos(folder, server, 7, "4m", print).run(KILLS, airflow=False)
    print(outcome.text())
    assert not check(outcome)
    assert sum(outcome.kills.values()) == KILLS
