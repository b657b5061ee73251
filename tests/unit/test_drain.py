"""When a drain stops trying again, and what it says of the events that it leaves waiting."""

from __future__ import annotations

from datetime import timedelta

from clickjoin.cli.job_commands import _sums, waiting
from clickjoin.dispatcher.pacing import Passes
from tests.unit.lakes import NOON

SECOND = timedelta(seconds=1)


def test_nothing_due_is_nothing_to_do() -> None:
    passes = Passes()
    assert not passes.goes_on(None, NOON)
    assert not passes.goes_on(NOON + SECOND, NOON)
    assert passes.goes_on(NOON, NOON)


def test_a_pass_takes_up_all_that_was_due_when_it_began() -> None:
    passes = Passes()
    assert all(passes.goes_on(NOON - n * SECOND, NOON + n * SECOND) for n in range(100))
    assert passes.made == 1


def test_what_falls_due_again_and_again_is_left_after_some_passes() -> None:
    passes = Passes()
    made = [passes.goes_on(NOON + n * SECOND, NOON + n * SECOND) for n in range(20)]
    assert made == [True] * Passes.MOST + [False] * (20 - Passes.MOST)


def test_sums_that_do_not_agree_end_with_a_remedy() -> None:
    counts = {"agree": False, "lost": 1, "doubled": 0, "wrong_from": "2026-03-01", "wrong_to": "2026-03-03"}
    dates = "--from 2026-03-01 --to 2026-03-03"
    lost = f"1 id is in no table: run `clickjoin verify --repair {dates}`, then drain again"
    above = "something is wrong: see above"
    assert _sums({"ok": False, "accounts": counts}) == f"{above}; {lost}"
    doubled = f"1,200 ids are twice, or without a record: `clickjoin verify {dates}` names them"
    assert _sums({"ok": False, "accounts": counts | {"doubled": 1200}}) == f"{above}; {lost}; {doubled}"
    assert _sums({"ok": False, "accounts": {"agree": True}}) == _sums({"ok": False}) == above


def test_what_waits_is_said_with_its_time() -> None:
    data = {"waiting": 1200, "due": 0, "next_due": NOON.isoformat()}
    assert next(waiting(data)) == (
        "1,200 events wait for their primary event: none is due before 2026-03-01T12:00:00Z, so this drain ends; "
        "`clickjoin run` or `retry` tries them then"
    )
    assert next(waiting(data | {"waiting": 1})).startswith("1 event waits for its primary event: none is due before ")
    assert "3 of them are due again" in next(waiting(data | {"due": 3}))
    assert [*waiting({"waiting": 0, "due": 0, "next_due": None})] == []
