"""A replica that is behind leaves time to one that is not, and none where it is alone; one that is not has a pace."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from clickjoin import engine as module
from clickjoin.dispatcher import pacing
from clickjoin.dispatcher.pacing import _MOST_PAUSE, DutyCycle
from clickjoin.engine import Engine


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Seconds that a replica pauses after a batch."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))

    def seconds(*, share: float = 0.5, backlog: int = 9, alive: bool = True, worked: float = 3.0, **more: Any) -> float:
        pipeline = SimpleNamespace(batch=SimpleNamespace(catch_up_share=share))
        pipeline.pipeline = "p"
        lake = SimpleNamespace(delta=None)
        this: Any = SimpleNamespace(pipeline=pipeline, lake=lake, replica="main", _now=lambda: None)
        monkeypatch.setattr(module, "any_alive", lambda *_: alive)
        metrics = {"seconds_land": worked / 2, "seconds_claim": worked / 2, "joined": 7}
        item: Any = SimpleNamespace(plan=SimpleNamespace(backlog_events=backlog), metrics=metrics)
        start = now[0]
        Engine._give_way(this, item, more.get("stop", lambda: False), more.get("end"))
        return round(now[0] - start, 3)

    return seconds


def test_pauses_for_its_share(pause: Any) -> None:
    assert pause() == pytest.approx(3, abs=0.2)
    assert pause(share=0.25) == pytest.approx(9, abs=0.2)
    assert pause(share=0.01, worked=60) == pytest.approx(_MOST_PAUSE, abs=0.2)


def test_goes_on_at_once(pause: Any) -> None:
    assert pause(share=1) == 0
    assert pause(backlog=0) == 0
    assert pause(alive=False) == 0


def test_ends_when_asked_to(pause: Any) -> None:
    assert pause(stop=lambda: True) == 0
    assert pause(end=1001.0 + 0) <= 4


@pytest.mark.parametrize(("backlog", "took", "paused"), [(0, 0.3, 0.7), (0, 1.2, 0), (5, 0.3, 0)])
def test_begins_a_batch_every_so_often(
    monkeypatch: pytest.MonkeyPatch, backlog: int, took: float, paused: float
) -> None:
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    this: Any = SimpleNamespace(pipeline=SimpleNamespace(batch=SimpleNamespace(trigger_interval=1.0)))
    item: Any = SimpleNamespace(plan=SimpleNamespace(backlog_events=backlog))
    Engine._pace(this, item, now[0] - took, lambda: False, None)
    assert now[0] - 1000 == pytest.approx(paused)
    Engine._pace(this, item, now[0], lambda: True, None)
    Engine._pace(this, item, now[0], lambda: False, now[0])
    assert now[0] - 1000 == pytest.approx(paused)


def test_retries_take_half_of_the_time_while_records_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now, begun = [1000.0], []
    monkeypatch.setattr(pacing.time, "monotonic", lambda: now[0])

    def retry() -> None:
        begun.append(now[0])
        now[0] += 12

    half = DutyCycle()
    for _ in range(20):
        now[0] += 2  # the join
        half.of(retry, waits=True)
    assert [at - begun[0] for at in begun] == [0, 24, 48, 72]
    half.of(retry, waits=False)
    assert len(begun) == 5
