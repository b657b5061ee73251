"""What tests of sources share: a source that reads a folder, and the log in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sources_bench import Feed


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "a.jsonl"
