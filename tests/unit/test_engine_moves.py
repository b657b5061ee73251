"""A batch whose file moves while it is read is run again at once; any other failure is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from clickjoin import batch
from clickjoin.kernel.file_bytes import changed
from clickjoin.model.errors import SourceError


def _engine(monkeypatch: pytest.MonkeyPatch, errors: list[Exception]) -> tuple[Any, list[int]]:
    tries: list[int] = []

    def run_batch(*_: object, **__: object) -> dict[str, list[Any]]:
        tries.append(1)
        if errors:
            raise errors.pop(0)
        return {}

    monkeypatch.setattr(batch, "run_batch", run_batch)
    return SimpleNamespace(), tries


def test_a_moved_file_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, tries = _engine(monkeypatch, [changed("/logs/a", 7), changed("/logs/a", 7)])
    assert batch.carry_through(runner, {}) == {}
    assert len(tries) == 3


@pytest.mark.parametrize(
    "text",
    [
        "Traceback ...\nclickjoin.model.errors.SourceMoved: /logs/a: is not where it was. Run it again\n\tat java.base",
        "Job aborted: FileNotFoundError: /lake/primary/bucket=1/part-0.parquet",
    ],
)
def test_so_is_what_an_executor_missed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    runner, tries = _engine(monkeypatch, [RuntimeError(text)])
    assert batch.carry_through(runner, {}) == {}
    assert len(tries) == 2


def test_it_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, tries = _engine(monkeypatch, [changed("/logs/a", 7) for _ in range(9)])
    with pytest.raises(SourceError, match="not the planned ones"):
        batch.carry_through(runner, {})
    assert len(tries) == 4


def test_other_failures_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, tries = _engine(monkeypatch, [ValueError("no")])
    with pytest.raises(ValueError, match="no"):
        batch.carry_through(runner, {})
    assert len(tries) == 1
