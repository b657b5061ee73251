"""A replica that is behind leaves time to one that is not, and none where it is alone; one that is not has a pace."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from clickjoin import rounds as module
from clickjoin.dispatcher import pacing, peers
from clickjoin.dispatcher.pacing import _MOST_PAUSE, DutyCycle, Pace, wait
from clickjoin.rounds import Rounds

Seconds = list[float]


class Bench:
    """One replica's rounds, by a clock in one item; each batch takes `took` seconds and leaves `backlog`."""

    def __init__(self, now: Seconds, **batch: float) -> None:
        self.clock, self.took, self.backlog, self.worked = now, 0.0, 0, 0.0
        settings = {"catch_up_share": 0.5, "trigger_interval": 1.0} | batch
        self.pipeline = SimpleNamespace(batch=SimpleNamespace(**settings), pipeline="p")
        self.lake, self.replica = SimpleNamespace(delta=None), "main"
        self.rounds = Rounds(self)  # type: ignore[arg-type]

    def join_once(self) -> Any:
        self.clock[0] += self.took
        half = self.worked / 2
        metrics = {"seconds_land": half, "seconds_claim": half, "joined": 7}
        return SimpleNamespace(plan=SimpleNamespace(backlog_events=self.backlog), metrics=metrics)

    def retry_once(self) -> None:
        raise AssertionError("not asked for")

    def problems(self) -> tuple[()]:
        return ()

    def now(self) -> None:
        return None

    def pause(self, stop: Any = lambda: False, end: float | None = None) -> float:
        """Seconds from the end of a batch to the next."""
        due = self.rounds.once(retries=False, done=lambda _: None, problems=lambda _: None).due
        ended = self.clock[0]
        wait(due, stop, end)
        return round(self.clock[0] - ended, 3)


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    """A clock, in one item; sleeping sets it."""
    now = [1000.0]
    for place in (module, pacing):
        monkeypatch.setattr(place.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(place.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch, seconds: Seconds) -> Any:
    """Seconds that a replica that is behind pauses after a batch."""

    def found(*, share: float = 0.5, backlog: int = 9, alive: bool = True, worked: float = 3.0, **more: Any) -> float:
        monkeypatch.setattr(peers, "any_alive", lambda *_: alive)
        bench = Bench(seconds, catch_up_share=share, trigger_interval=0.0)
        bench.backlog, bench.worked = backlog, worked
        return bench.pause(**more)

    return found


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
    seconds: Seconds, monkeypatch: pytest.MonkeyPatch, backlog: int, took: float, paused: float
) -> None:
    monkeypatch.setattr(peers, "any_alive", lambda *_: False)
    bench = Bench(seconds)
    bench.took, bench.backlog = took, backlog
    assert bench.pause() == pytest.approx(paused)


def test_a_pause_ends_when_asked_to(seconds: Seconds) -> None:
    bench = Bench(seconds)
    assert bench.pause(stop=lambda: True) == 0
    assert bench.pause(end=seconds[0]) == 0


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
