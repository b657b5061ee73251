"""A replica that is behind leaves time to one that is not, and none where it is alone; one that is not has a pace."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from clickjoin import engine as module
from clickjoin.dispatcher import pacing, peers
from clickjoin.dispatcher.pacing import _MOST_PAUSE, DutyCycle, Pace
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
        monkeypatch.setattr(peers, "any_alive", lambda *_: alive)
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


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock, in one item; sleeping sets it."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def paced(backlog: int = 0) -> tuple[Any, Any]:
    """An engine that begins now, as far as its pace goes, and a batch of it."""
    this: Any = SimpleNamespace(_pacer=Pace(1.0))
    item: Any = SimpleNamespace(plan=SimpleNamespace(backlog_events=backlog))
    return this, item


@pytest.mark.parametrize(("backlog", "took", "paused"), [(0, 0.3, 0.7), (0, 1.2, 0), (5, 0.3, 0)])
def test_begins_a_batch_every_so_often(seconds: list[float], backlog: int, took: float, paused: float) -> None:
    this, item = paced(backlog)
    seconds[0] += took
    Engine._pace(this, item, 1000, lambda: False, None)
    assert seconds[0] - 1000 - took == pytest.approx(paused)


def test_a_pause_ends_when_asked_to(seconds: list[float]) -> None:
    this, item = paced()
    Engine._pace(this, item, seconds[0], lambda: True, None)
    Engine._pace(this, item, seconds[0], lambda: False, seconds[0])
    assert seconds[0] == 1000


def begun(seconds: list[float], pace: Pace, work: float, until: float) -> int:
    """Work through batches, each there at once, until then; how many have begun."""
    count = 0
    while seconds[0] < until:
        at, count = seconds[0], count + 1
        seconds[0] = max(at + work, pace.next_after(at))
    return count


def test_after_a_quiet_time_batches_begin_at_once_and_no_more_in_all(seconds: list[float]) -> None:
    pace = Pace(1.0)
    assert begun(seconds, pace, 0.1, 1060) == 60  # a new process has no quiet time behind it
    seconds[0] += 3600
    for at in range(Pace.AT_ONCE):
        pause = pace.next_after(seconds[0]) - seconds[0]
        assert pause <= 0 if at < Pace.AT_ONCE - 1 else pause == pytest.approx(1.0), at
    seconds[0] += 3600
    first = seconds[0]
    assert begun(seconds, pace, 0.1, first + 60) <= 60 + Pace.AT_ONCE
    seconds[0] += 2  # two batches' worth of quiet
    assert [pace.next_after(seconds[0]) <= seconds[0] for _ in range(3)].count(True) <= 2


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
