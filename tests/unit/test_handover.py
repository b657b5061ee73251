"""Hand-over from one process to the next: by the journal's word, between two batches, whichever of them is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clickjoin.dispatcher import handover
from clickjoin.dispatcher.dispatcher import Dispatcher
from clickjoin.dispatcher.handover import HandOver
from clickjoin.dispatcher.journal import Journal
from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.schemas import BATCHES
from tests.sampled import some
from tests.unit.lakes import pipeline
from tests.unit.processing_bench import MINUTE, NOON, Output

LEASE, PATIENCE = 1000.0, 100.0


class Worker:
    """A process's part in it, with a journal that it has opened itself."""

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(ArrowTables(str(folder)), "p", "main", "join")
        self.dispatcher = Dispatcher(pipeline(folder), ArrowTables(str(folder)), "main", "join")
        self.turn = HandOver(self.dispatcher, LEASE, PATIENCE)

    def plan(self, age: float = 0) -> BatchPlan:
        """Plan the next batch."""
        number = self.dispatcher.known().last + 1
        planned = int((time.time() - age) * 1e6)
        found = self.dispatcher.write(BatchPlan("p", "main", "join", number, planned, snapshot=True))
        assert found
        return found

    def settle(self, plan: BatchPlan) -> None:
        """It is done."""
        self.journal.settle(plan.number, {}, datetime.now(UTC))


class Clock:
    """Time that passes when the test's own thread sleeps, and what happens meanwhile."""

    def __init__(self) -> None:
        self._thread, self._sleep = threading.get_ident(), time.sleep
        self.now, self.events = 1000.0, list[tuple[float, Callable[[], Any]]]()

    def sleep(self, seconds: float) -> None:
        """See time.sleep, which a thread of an earlier test may call as well."""
        if threading.get_ident() != self._thread:
            self._sleep(seconds)
            return
        self.now += seconds
        while self.events and self.events[0][0] <= self.now:
            self.events.pop(0)[1]()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(handover.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(handover.time, "sleep", clock.sleep)
    return clock


@pytest.fixture
def workers(tmp_path: Path, clock: Clock) -> Callable[[], Worker]:
    ArrowTables(str(tmp_path)).create(BATCHES)
    return lambda: Worker(tmp_path)


def test_goes_on_until_the_next_has_begun(workers: Callable[[], Worker], clock: Clock) -> None:
    old, new = workers(), workers()
    old.turn.take_over()
    old.settle(old.plan())
    clock.now += LEASE + PATIENCE / 2
    assert not old.turn.is_over()  # the next one is late
    number, before = new.journal.take_turn(), clock.now
    clock.events = [(clock.now + 1, lambda: new.journal.begin_turn(number))]
    assert old.turn.is_over()
    assert clock.now == pytest.approx(before + 1, abs=0.1)


def test_gives_way_before_its_lease_is_over_though_nothing_comes(workers: Callable[[], Worker], clock: Clock) -> None:
    """Else both would plan the next batch."""
    old, new = workers(), workers()
    old.turn.take_over()
    old.settle(old.plan())
    new.turn.take_over()
    assert old.turn.is_over()
    assert not new.turn.is_over()
    assert clock.now < 1001


def test_goes_on_where_the_next_one_was_killed(workers: Callable[[], Worker], clock: Clock) -> None:
    old, killed, third = workers(), workers(), workers()
    old.turn.take_over()
    killed.journal.take_turn()
    before = clock.now
    assert not old.turn.is_over()
    assert clock.now == pytest.approx(before + handover.STAND_BY_SECONDS, abs=0.5)
    before = clock.now
    old.settle(old.plan())
    assert not old.turn.is_over()
    assert clock.now == before  # it stands by once
    clock.now += LEASE
    assert not old.turn.is_over()
    third.turn.take_over()
    assert old.turn.is_over()


def test_one_that_was_overtaken_while_it_waited_does_nothing(workers: Callable[[], Worker], clock: Clock) -> None:
    slow, quick = workers(), workers()
    clock.events = [(clock.now + 0.1, quick.turn.take_over)]
    slow.turn.take_over()
    assert slow.turn.is_over()
    assert not quick.turn.is_over()


def test_no_batch_is_carried_out_by_both(workers: Callable[[], Worker], clock: Clock) -> None:
    """One that did not stand by, as it took the next one for dead, plans just before that one begins."""
    old, new = workers(), workers()
    old.turn.take_over()
    begin = new.journal.begin_turn

    def slowly(number: int) -> None:
        plan = old.plan()
        begin(number)
        clock.events = [(clock.now + 2, lambda: old.settle(plan))]

    new.journal.begin_turn = slowly  # type: ignore[method-assign]
    new.turn._journal = new.journal
    new.turn.take_over()
    assert new.dispatcher.unsettled() is None
    assert clock.now > 1002


def test_nobody_comes(workers: Callable[[], Worker], clock: Clock) -> None:
    old = workers()
    old.turn.take_over()
    clock.now += old.turn.seconds - 1
    assert not old.turn.is_over()
    clock.now += 1
    assert old.turn.is_over()


def test_the_batch_under_way_is_left_to_the_one_that_began_it(workers: Callable[[], Worker], clock: Clock) -> None:
    old, new = workers(), workers()
    old.turn.take_over()
    plan = old.plan()
    clock.events = [(clock.now + 2, lambda: old.settle(plan))]
    new.turn.take_over()
    assert clock.now == pytest.approx(1002, abs=0.5)
    assert new.plan().number == plan.number + 1


def test_a_batch_whose_process_has_died_is_taken_up(workers: Callable[[], Worker], clock: Clock) -> None:
    old, new = workers(), workers()
    plan = old.plan(age=60)
    new.turn.take_over()
    assert clock.now < 1001
    assert new.dispatcher.unsettled() == plan


def test_every_turn_has_its_own_number(workers: Callable[[], Worker]) -> None:
    some, numbers = [workers() for _ in range(4)], list[int]()
    threads = [threading.Thread(target=lambda one=one: numbers.append(one.journal.take_turn())) for one in some]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == [1, 2, 3, 4]


COMMAND = """
import json, sys
from clickjoin.jobs.submit import main
main(["process", sys.argv[1], "main", sys.argv[2], json.dumps({"hands_over": True})])
"""


def start(out: Output, lease: float, fault: str = "") -> subprocess.Popen[bytes]:
    env = {**os.environ, "CLICKJOIN_FAULT": fault}
    return subprocess.Popen([sys.executable, "-c", COMMAND, str(out.file), str(lease)], env=env)


@pytest.mark.parametrize(("old", "new"), some([("", "process-planned"), ("process-state", "")], 2))
def test_one_of_two_is_killed_in_its_batch(tmp_path: Path, old: str, new: str) -> None:
    """Real processes: the other one returns by itself, a third takes up what is left, and each event counts once."""
    out = Output(tmp_path, batch={"trigger_interval": "50ms", "hand_over": "1s"})
    out.publish([("a", "hats", NOON)], NOON + MINUTE)
    first = start(out, 5, old)
    journal = Journal(out.delta, out.name, "main", "process")
    while not journal.begun() and first.poll() is None:  # else the second may be ready before it
        time.sleep(0.05)
    pair = [first, start(out, 2, new)]
    while any(process.poll() is None for process in pair):
        out.publish([(f"{out.batch}", "hats", NOON + MINUTE)], NOON + MINUTE)
        time.sleep(0.2)
    assert sorted(process.returncode for process in pair) == [-signal.SIGKILL, 0]
    out.publish([("z", "hats", NOON + 2 * MINUTE)], NOON + 10 * MINUTE)
    out.drain()
    published = out.batch  # each of one event
    assert [window for *_, window, _ in out.signals()] == [NOON + at * MINUTE for at in range(3)]
    assert sum(count for *_, count in out.signals()) == published
