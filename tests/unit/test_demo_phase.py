"""The demo says what it waits for."""

from __future__ import annotations

from pathlib import Path

from demo.__main__ import Demo
from demo.store import Store


def test_phases(tmp_path: Path) -> None:
    demo = Demo(tmp_path, 1, 1, Store("lake", tmp_path / "lake"))
    assert demo.phase() == "warming up: Spark's first batches"
    demo._warm.set()
    assert demo.phase() == "feeding"
