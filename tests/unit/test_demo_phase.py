"""The demo says what it waits for."""

from __future__ import annotations

from pathlib import Path

from demo.__main__ import Demo


def test_phases(tmp_path: Path) -> None:
    demo = Demo(tmp_path, seconds=1, seed=1)
    assert demo.phase() == "warming up: Spark's first batches"
    demo._warm.set()
    assert demo.phase() == "feeding"
