"""Plans of a topic, from made-up answers of brokers: what is read, in which shares, and what is reported as lost."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.kernel.chunk import KafkaChunk, spread_offsets
from clickjoin.kernel.kafka.connection import Ends, Topic
from clickjoin.model.split import Budget, SourceOffset, SourcePlan
from clickjoin.sources.kafka.planning import Look, located, make_plan, shares
from clickjoin.sources.kafka.state import Mark, Place, Position, Range

MUCH = Budget(10**9, 10**12)


def look(ends: dict[int, tuple[int, int]], topic_id: str = "t1", **more: object) -> Look:
    known = {number: Ends(*pair) for number, pair in ends.items()}
    return Look("clicks", Topic("c1", topic_id, tuple(known)), known, **{"begin": {}, "now": 1.0} | more)  # type: ignore[arg-type]


def taken(plan: SourcePlan, positions: dict[str, Position]) -> list[tuple[int, int, int]]:
    """Takes a plan's offsets up; its ranges as partition, start, end."""
    positions |= {offset.partition: Position.of(offset) for offset in plan.offsets}
    ranges = [Range.of(split) for split in plan.splits]
    return [(part.place.number, part.start, part.end) for part in ranges]


@given(st.lists(st.integers(0, 10**6), max_size=20), st.integers(1, 10**6))
def test_shares_add_up_and_starve_nobody(unread: list[int], room: int) -> None:
    given_ = shares(unread, room)
    assert sum(given_) == min(room, sum(unread))
    assert all(0 <= one <= has for one, has in zip(given_, unread, strict=True))
    if unread:
        least = room // (4 * len(unread))
        assert all(one >= min(has, least) for one, has in zip(given_, unread, strict=True))


STEP = st.tuples(
    st.lists(st.integers(0, 50), min_size=1, max_size=4),  # how many messages come, by partition
    st.lists(st.integers(0, 60), min_size=1, max_size=4),  # how far retention goes, by partition
    st.integers(1, 40),  # the budget
    st.booleans(),  # whether the topic is made again
)


@given(st.lists(STEP, max_size=12))
def test_every_offset_is_planned_once_or_never_was_there(steps: list[tuple[list[int], list[int], int, bool]]) -> None:
    """However the log grows, is cut off in front, gets partitions or is made again: ranges tile it, without overlap."""
    positions: dict[str, Position] = {}
    planned: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    lows: dict[int, int] = {}
    highs: dict[int, int] = {}
    seen: dict[tuple[str, int], int] = {}
    generation = 0
    for grown, cut, room, again in steps:
        if again:
            generation, lows, highs = generation + 1, {}, {}
        for number in range(max(len(grown), len(highs))):
            highs[number] = highs.get(number, 0) + (grown[number] if number < len(grown) else 0)
            lows[number] = min(max(lows.get(number, 0), cut[number] if number < len(cut) else 0), highs[number])
        ends = {number: (lows[number], high) for number, high in highs.items()}
        plan = make_plan(look(ends, f"t{generation}"), positions, Budget(room, 10**9))
        first = {split.partition: Range.of(split) for split in plan.splits}
        assert len(first) == len(plan.splits)
        for part in first.values():
            planned[part.place.topic_id, part.place.number].append((part.start, part.end))
        assert sum(split.events for split in plan.splits) <= room
        taken(plan, positions)
        unread = sum(
            high - max(positions[str(Place("c1", f"t{generation}", n))].next, low) for n, (low, high) in ends.items()
        )
        assert plan.backlog_events == unread
        for number, (low, high) in ends.items():
            seen.setdefault((f"t{generation}", number), low)
            assert positions[str(Place("c1", f"t{generation}", number))].next <= high
    for key, ranges in planned.items():
        at = seen[key]
        for start, end in ranges:
            assert start == at < end
            at = end


@pytest.mark.parametrize(
    ("begin", "first"),
    [({}, [(0, 5, 20)]), ({0: 12}, [(0, 12, 20)]), ({0: 1 << 62}, []), ({0: 1}, [(0, 5, 20)])],
)
def test_where_the_first_look_begins(begin: dict[int, int], first: list[tuple[int, int, int]]) -> None:
    """By `from`; and it is noted even where nothing is read, since the end of today is not that of tomorrow."""
    positions: dict[str, Position] = {}
    assert taken(make_plan(look({0: (5, 20)}, begin=begin), positions, MUCH), positions) == first
    plan = make_plan(look({0: (5, 21), 1: (0, 3)}), positions, MUCH)
    assert taken(plan, positions) == [(0, 20, 21), (1, 0, 3)]  # a partition that came later is read whole
    assert make_plan(look({0: (5, 21), 1: (0, 3)}), positions, MUCH) == SourcePlan(
        lag={"kafka:clicks/0": 0, "kafka:clicks/1": 0}
    )


def test_deleted_offsets_are_reported_and_go_with_the_next_range() -> None:
    positions: dict[str, Position] = {}
    taken(make_plan(look({0: (0, 40)}), positions, MUCH), positions)
    plan = make_plan(look({0: (50, 60)}), positions, Budget(4, 10**9))
    assert taken(plan, positions) == [(0, 40, 54)]
    assert [(one.kind, one.offset, one.length) for one in plan.problems] == [("source-lost", 40, 10)]
    assert plan.backlog_events == 6
    now = Topic("c1", "t1", (0,))
    lost, rest = located(Range.of(plan.splits[0]), now, {0: Ends(50, 60)}, None)
    assert (lost.start, lost.end, bool(lost.lost)) == (40, 50, True)
    assert (rest.start, rest.end, rest.lost) == (50, 54, "")
    # All of it: one row, of no more than was planned.
    (gone,) = located(Range.of(plan.splits[0]), now, {0: Ends(70, 90)}, None)
    assert (gone.start, gone.end, bool(gone.lost)) == (40, 54, True)


def test_a_topic_that_was_made_again_is_another() -> None:
    positions: dict[str, Position] = {}
    taken(make_plan(look({0: (0, 30), 1: (0, 30)}), positions, Budget(40, 10**9)), positions)
    plan = make_plan(look({0: (0, 7)}, "t2"), positions, MUCH)
    found = [(split.partition, split.payload["start"], split.payload["end"]) for split in plan.splits]
    assert found == [("c1/t1/0", 20, 30), ("c1/t1/1", 20, 30), ("c1/t2/0", 0, 7)]
    assert [(one.kind, one.length) for one in plan.problems] == [("source-lost", 10), ("source-lost", 10)]
    (lost,) = located(Range.of(plan.splits[0]), Topic("c1", "t2", (0,)), {0: Ends(0, 7)}, None)
    assert (lost.start, lost.end) == (20, 30)
    assert "made again" in lost.lost
    taken(plan, positions)
    assert make_plan(look({0: (0, 7)}, "t2"), positions, MUCH) == SourcePlan(lag={"kafka:clicks/0": 0})  # reported once


def test_offsets_of_another_topic_are_left_alone() -> None:
    """The pipeline's file named another one before, and may again."""
    other = Position(Place("c1", "t0", 0), "old", 3, 9, 1.0)
    plan = make_plan(look({0: (0, 2)}), {str(other.place): other}, MUCH)
    assert [split.partition for split in plan.splits] == ["c1/t1/0"]
    assert not plan.problems


def test_a_log_that_is_shorter_than_was_planned_waits_and_then_goes_on() -> None:
    positions: dict[str, Position] = {}
    taken(make_plan(look({0: (0, 60)}), positions, MUCH), positions)
    marks = (Mark(59, "lost"), Mark(49, "there"))
    positions = {name: replace(position, marks=marks) for name, position in positions.items()}
    short = look({0: (0, 50)})
    plan = make_plan(short, positions, MUCH)
    assert not plan.splits
    assert not plan.offsets
    assert [(one.kind, one.offset, one.length) for one in plan.problems] == [("rewritten", 50, 10)]
    plan = make_plan(replace(short, cut=[0]), positions, MUCH)
    taken(plan, positions)
    assert [position.marks for position in positions.values()] == [marks[1:]]  # what was lost is compared no more
    assert taken(make_plan(look({0: (0, 55)}), positions, MUCH), positions) == [(0, 50, 55)]


def test_bytes_bound_a_batch_too() -> None:
    plan = make_plan(look({0: (0, 1000)}, mean=200.0), {}, Budget(10**9, 2000))
    assert [(split.events, split.bytes) for split in plan.splits] == [(10, 2000)]
    assert (plan.backlog_events, plan.backlog_bytes) == (990, 198_000)


def test_payloads_come_back_from_the_journal() -> None:
    position = Position(Place("a/b", "t-_1", 12), "clicks", 3, 9, 1.5)
    assert Position.of(position.to_offset()) == position
    assert isinstance(position.to_offset(), SourceOffset)
    part = Range(position.place, "clicks", 3, 9)
    assert Range.of(part.to_split(6, 60)) == part
    assert part.to_split(6, 60).path == "kafka:clicks/12"


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 3000)), min_size=1, max_size=6), st.integers(1, 8))
def test_tasks_hold_every_offset_once(ranges: list[tuple[int, int]], most: int) -> None:
    chunks = [KafkaChunk(f"k/{n}", f"p{n}", "k", "t", n, start, start + size) for n, (start, size) in enumerate(ranges)]
    work = spread_offsets(chunks, [8000 * (one.end - one.start) for one in chunks], most)
    assert 1 <= len(work) <= most
    for task in work:
        assert len({chunk.partition for chunk in task}) == len(task)  # one place to read from at a time
    found = sorted((chunk.partition, at) for task in work for chunk in task for at in range(chunk.start, chunk.end))
    assert found == sorted((chunk.partition, at) for chunk in chunks for at in range(chunk.start, chunk.end))
