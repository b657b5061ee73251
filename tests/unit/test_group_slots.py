"""Rounds of a group's members: so many at a time, the longest due first, and none waits for those that are behind."""

from __future__ import annotations

import random
import time

from hypothesis import given
from hypothesis import strategies as st

from clickjoin.group.slots import STUCK, STUCK_BEHIND, Slots
from clickjoin.group.work import _take
from clickjoin.rounds import Round


def caught_up(count: int, most: int) -> Slots[str]:
    """Members `a`, `b` and so on that have had their first round, which left nothing behind, and are due at 1."""
    names = [chr(ord("a") + number) for number in range(count)]
    slots = Slots(names, most)
    for _ in names:
        name = slots.begin(0)
        assert name
        slots.end(name, 1, behind=False)
    return slots


def begun(slots: Slots[str], now: float) -> list[str]:
    """All that may begin now."""
    found = []
    while name := slots.begin(now):
        found.append(name)
    return found


def test_as_many_as_there_are_slots_the_longest_due_first() -> None:
    slots = caught_up(4, 2)
    assert begun(slots, 0.9) == []
    assert slots.wait(0.9) < 0.11
    assert begun(slots, 1) == ["a", "b"]
    slots.end("b", 3, behind=False)
    assert begun(slots, 1.1) == ["c"]
    slots.end("a", 1.2, behind=False)
    assert begun(slots, 5) == ["d"]
    slots.end("d", 9, behind=False)
    assert begun(slots, 5) == ["a"]
    slots.end("c", 9, behind=False)
    assert begun(slots, 5) == ["b"]


def test_those_that_are_behind_take_half_while_others_are_not() -> None:
    slots = caught_up(4, 2)
    for name in begun(slots, 1):
        slots.end(name, 1, behind=True)
    assert begun(slots, 2) == ["a", "c"]
    slots.end("c", 3, behind=False)
    assert begun(slots, 2) == ["d"]  # not b, which is behind as well
    slots.end("d", 9, behind=False)
    assert begun(slots, 2) == []
    slots.end("a", 2, behind=True)
    assert begun(slots, 2.5) == ["b"]
    assert begun(slots, 3) == ["c"]


def test_where_all_are_behind_they_take_all() -> None:
    slots = Slots(["a", "b", "c"], 2)
    assert begun(slots, 0) == ["a", "b"]
    slots.end("a", 0, behind=True)
    assert begun(slots, 0) == ["a"]
    slots.end("b", 0.5, behind=True)
    assert begun(slots, 1) == ["c"]


def test_a_round_that_hangs_holds_up_no_other() -> None:
    slots = caught_up(4, 2)
    assert begun(slots, 1) == ["a", "b"]
    assert begun(slots, STUCK) == []
    assert begun(slots, 1 + STUCK) == ["c", "d"]
    slots = Slots(["a", "b"], 1)
    assert begun(slots, 0) == ["a"]
    assert begun(slots, STUCK) == []
    assert begun(slots, STUCK_BEHIND) == ["b"]


def test_ends_when_all_have_left() -> None:
    slots = caught_up(2, 2)
    assert begun(slots, 1) == ["a", "b"]
    slots.leave("a")
    assert slots
    slots.leave("b")
    assert not slots


@given(st.integers(1, 8), st.integers(1, 5), st.integers())
def test_everybody_has_a_turn_and_limits_hold(members: int, most: int, seed: int) -> None:
    rng = random.Random(seed)
    slots = Slots(list(range(members)), most)
    now, running, behind = 0.0, dict[int, float](), set(range(members))
    last = dict.fromkeys(range(members), 0.0)
    for _ in range(300):
        now += rng.uniform(0, 0.3)
        while (member := slots.begin(now)) is not None:
            assert member not in running
            running[member], last[member] = now, now
            assert len(running) <= most
            if len(behind) < members:
                assert member not in behind or len(behind & running.keys()) <= max(most // 2, 1)
        for member, at in list(running.items()):
            if now - at > 0.5 or rng.random() < 0.5:
                del running[member]
                behind.discard(member)
                if rng.random() < 0.3:
                    behind.add(member)
                slots.end(member, now + rng.choice([0, 1]), behind=member in behind)
    assert min(last.values()) > now - 1 - 2 * members


def test_who_is_stuck() -> None:
    slots = caught_up(2, 2)
    assert begun(slots, 1) == ["a", "b"]
    slots.end("b", 2, behind=True)
    assert begun(slots, 2) == ["b"]
    assert slots.stuck(STUCK) == []
    assert slots.stuck(2 + STUCK) == [("a", 1)]
    assert [name for name, _ in slots.stuck(2 + STUCK_BEHIND)] == ["a", "b"]
    slots.leave("a")
    assert ("a" in slots, "b" in slots) == (False, True)


def test_a_quiet_member_rests_for_a_while_and_not_for_long() -> None:
    """Looks of many quiet members must not add up to work; one that was slow once says little of the next."""
    rests = []
    for seconds in (0.001, 0.1, 12.0):
        slots = Slots(["a"], 1)
        assert slots.begin(time.monotonic()) == "a"
        now = time.monotonic()
        _take(slots, ("a", Round(now + 0.2, worked=False, seconds=seconds), None), 10)  # type: ignore[arg-type]
        rests.append(slots._states["a"].due - now)
    assert [round(rest, 1) for rest in rests] == [0.2, 2.0, 5.0]
