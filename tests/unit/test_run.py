"""Running for ever: through failures that pass, not through those that stay, and until a signal."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors.exceptions.connect import PythonException

from clickjoin.jobs import run
from clickjoin.model.errors import AdapterError, BatchError, ConfigError


class FakeEngine:
    """Does what it is given, one thing a call of `run`."""

    made = 0
    script: Iterator[Callable[[], Any]]

    def __init__(self, *_: Any) -> None:
        FakeEngine.made += 1

    def run(self, seconds: float, *, stop: Callable[[], bool], **_: Any) -> None:
        next(FakeEngine.script)()


def fail(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


@pytest.fixture
def forever(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[list[str], list[float]]]]:
    """Runs a script until it ends itself; returns what was said, and how long it paused."""
    kept = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
    pauses: list[float] = []
    monkeypatch.setattr(run, "Engine", FakeEngine)
    monkeypatch.setattr(run.time, "sleep", pauses.append)
    monkeypatch.setattr(FakeEngine, "made", 0)

    def call(*acts: Callable[[], Any]) -> tuple[list[str], list[float]]:
        said: list[str] = []
        stop = [lambda: os.kill(os.getpid(), signal.SIGTERM)]
        monkeypatch.setattr(FakeEngine, "script", iter([*acts, *stop]), raising=False)
        run.run(None, None, "main", said.append, None)  # type: ignore[arg-type]
        return said, pauses

    yield call
    for name, handler in kept.items():
        signal.signal(name, handler)


def test_stopped_by_a_signal(forever: Any) -> None:
    assert forever(lambda: None, lambda: None) == ([], [])
    assert FakeEngine.made == 1


def test_goes_on_after_failures_with_growing_pauses(forever: Any) -> None:
    said, pauses = forever(*[fail(BatchError("odd\nmore"))] * 3, lambda: None, fail(ValueError("other")))
    assert pauses == [1, 2, 4, 1]
    assert said[0] == "batch failed (BatchError: odd); again in 1 s"
    assert said[3] == "batch failed (ValueError: other); again in 1 s"
    assert FakeEngine.made == 5


def test_an_error_without_a_message(forever: Any) -> None:
    said, _ = forever(fail(TimeoutError()))
    assert said == ["batch failed (TimeoutError: ); again in 1 s"]


def test_executors_that_lack_something_are_said_once(forever: Any) -> None:
    with pytest.raises(ConfigError, match="executors have no pyarrow"):
        forever(fail(PythonException("\nTraceback ...\nModuleNotFoundError: No module named 'pyarrow'\n")))
    assert FakeEngine.made == 1


def test_gives_up_what_stays(forever: Any) -> None:
    with pytest.raises(TimeoutError):
        forever(*[fail(TimeoutError("gone"))] * 20)
    assert FakeEngine.made == 9


def test_stops_at_once_where_no_retry_helps(forever: Any) -> None:
    with pytest.raises(AdapterError):
        forever(fail(AdapterError("wrong")))
    assert FakeEngine.made == 1
