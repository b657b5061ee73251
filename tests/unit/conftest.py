"""What tests share: of sources one that reads a folder and the log in it, of the command line a way to call it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickjoin.cli import main
from clickjoin.config.starter import STARTER
from clickjoin.lake import committer
from clickjoin.model.errors import CommitStateUnknown
from tests.unit.sources_bench import Feed

LINE = '{"event_id": "a:1:1600000000000000", "query_id": "a:1:1600000000000000"}\n'


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "a.jsonl"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command as the shell would; returns exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["clickjoin", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main.main()
        out = capsys.readouterr()
        return int(stopped.value.code or 0), out.out, out.err

    return call


QUICK = STARTER.replace("engine: spark", "engine: arrow")  # these tests start no Spark


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A pipeline's file with logs beside it."""
    for name in ("queries", "clicks"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "0.jsonl").write_text(LINE)
    file = tmp_path / "p.yaml"
    file.write_text(QUICK)
    return file


@pytest.fixture
def lost_answer(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first commit from now on lands, and its writer gets no answer: its version."""
    flush, failed = committer._flush, []

    def fails(uri: str, version: int, *more: Any) -> None:
        flush(uri, version, *more)
        if not failed:
            failed.append(version)
            raise CommitStateUnknown(f"{uri}: version {version}", remedy="Check the disk")

    monkeypatch.setattr(committer, "_flush", fails)
    return failed
