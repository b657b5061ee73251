"""Planning: a batch as frozen data, and what a dispatcher hands out until it is settled."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.config import Pipeline
from clickjoin.dispatcher.dispatcher import Dispatcher
from clickjoin.dispatcher.journal import SNAPSHOT_EVERY
from clickjoin.dispatcher.planner import join_plan
from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.batch_plan import BatchPlan, TableSplit
from clickjoin.model.split import Budget, Problem, SourceOffset, SourcePlan, Split
from clickjoin.model.txn import Txn
from clickjoin.schemas import BATCHES, BY_NAME
from clickjoin.sources.port import Source

WORD = st.text(max_size=8)
NUMBER = st.integers(-1, 2**62)


def of(kind: type) -> st.SearchStrategy[Any]:
    """Any instance of a dataclass of words and numbers."""
    return st.builds(kind, **{f.name: WORD if f.type == "str" else NUMBER for f in fields(kind)})


STREAMS = st.sampled_from(["primary", "foreign"])
PAYLOADS = st.dictionaries(WORD, WORD | NUMBER | st.none() | st.lists(NUMBER, max_size=2), max_size=3)
OFFSETS = st.builds(SourceOffset, WORD, PAYLOADS)
SPLITS = st.builds(Split, WORD, PAYLOADS, WORD, NUMBER, NUMBER)
PLANS = st.builds(
    BatchPlan,
    pipeline=WORD,
    replica=WORD,
    sequence=WORD,
    number=NUMBER,
    planned=st.integers(0, 2**52),
    splits=st.dictionaries(STREAMS, st.lists(SPLITS, max_size=3).map(tuple)),
    offsets=st.dictionaries(STREAMS, st.lists(OFFSETS, max_size=3).map(tuple)),
    table=st.none() | of(TableSplit),
    problems=st.lists(of(Problem), max_size=2).map(tuple),
    backlog_events=NUMBER,
    backlog_bytes=NUMBER,
    snapshot=st.booleans(),
)


def position(name: str, offset: int) -> SourceOffset:
    return SourceOffset(name, {"read": offset})


def piece(name: str, start: int, end: int) -> Split:
    return Split(name, {"start": start, "end": end}, f"/{name}", 1, end - start)


def found(name: str, start: int, end: int, **more: Any) -> SourcePlan:
    return SourcePlan((piece(name, start, end),), (position(name, end),), **more)


@given(PLANS)
def test_json_round_trip(plan: BatchPlan) -> None:
    assert BatchPlan.from_json(plan.to_json()) == plan


def test_names() -> None:
    plan = BatchPlan("zozo", "east", "retry", 7, 1_700_000_000_000_001)
    assert plan.token == "zozo/east/retry/7"
    assert plan.txn == Txn("zozo/east/retry", 7)
    assert plan.planned_at == datetime(2023, 11, 14, 22, 13, 20, 1, UTC)


def test_join_plan() -> None:
    problem = Problem("missing", "/x", "no file")
    parts = {"primary": found("p", 0, 9, backlog_events=1, backlog_bytes=2), "foreign": found("f", 5, 6)}
    parts["foreign"] = replace(parts["foreign"], backlog_events=3, backlog_bytes=4, problems=(problem,))
    plan = join_plan("zozo", "main", 2, 10.5, parts, {"primary": {"old": position("old", 1)}})
    assert plan == BatchPlan(
        pipeline="zozo",
        replica="main",
        sequence="join",
        number=2,
        planned=10_500_000,
        splits={"primary": (piece("p", 0, 9),), "foreign": (piece("f", 5, 6),)},
        offsets={"primary": (position("p", 9),), "foreign": (position("f", 6),)},
        problems=(problem,),
        backlog_events=4,
        backlog_bytes=6,
    )


def test_nothing_to_do_is_no_plan(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tape, "plan", lambda self, known, budget: SourcePlan(backlog_bytes=9))
    assert make().next_join() is None


def test_a_moved_position_alone_is_a_plan() -> None:
    plan = join_plan("z", "m", 2, 0, {"primary": SourcePlan(offsets=(position("p", 1),))}, {})
    assert plan
    assert (plan.splits, plan.offsets) == ({}, {"primary": (position("p", 1),)})


@pytest.mark.parametrize("number", [1, 1 + SNAPSHOT_EVERY, 1 + 7 * SNAPSHOT_EVERY])
def test_snapshot_holds_all_positions(number: int) -> None:
    known = {"primary": {"a": position("a", 1), "b": position("b", 2)}, "foreign": {"c": position("c", 3)}}
    plan = join_plan("z", "m", number, 0, {"primary": found("a", 1, 9)}, known)
    assert plan
    assert plan.snapshot
    assert plan.offsets == {"primary": (position("a", 9), position("b", 2)), "foreign": (position("c", 3),)}
    assert known["primary"]["a"].payload["read"] == 1  # what is known is not touched


class Tape(Source):
    """A source of one file that grows by ten bytes a plan."""

    def __init__(self, name: str) -> None:
        self.name, self.asked = name, 0

    def plan(self, offsets: Any, budget: Budget) -> SourcePlan:
        self.asked += 1
        start = offsets[self.name].payload["read"] if self.name in offsets else 0
        return found(self.name, start, start + 10)

    def read_here(self, splits: Any, spec: Any) -> None:
        return None

    def rewind(self, offset: SourceOffset, split: Split) -> SourceOffset:
        return position(offset.partition, split.payload["start"])


@pytest.fixture
def make(tmp_path: Any) -> Any:
    delta = ArrowTables(str(tmp_path))
    delta.create(BATCHES)
    delta.create(BY_NAME["pending"])
    side = {"source": {"kind": "files", "path": "/x"}, "event_id": "id", "event_time": "embedded"}
    foreign = {**side, "primary_id": "q", "primary_time": "embedded"}
    pipeline = Pipeline.model_validate(
        {"pipeline": "z", "engine": "arrow", "lake": str(tmp_path), "primary": side, "foreign": foreign}
    )
    sources: Any = {"primary": Tape("p"), "foreign": Tape("f")}

    def dispatcher(sequence: str = "join") -> Dispatcher:
        return Dispatcher(pipeline, ArrowTables(str(tmp_path)), "main", sequence, sources, lambda: 1_000_000.0)

    return dispatcher


def test_a_batch_is_handed_out_until_it_is_settled(make: Any) -> None:
    dispatcher = make()
    first = dispatcher.next_join()
    assert (first.number, first.splits["primary"]) == (1, (piece("p", 0, 10),))
    assert dispatcher.next_join() == first == make().next_join()  # also after a restart
    dispatcher.settled(first, {})
    second = dispatcher.next_join()
    assert (second.number, second.splits["primary"]) == (2, (piece("p", 10, 20),))


def test_restart_goes_on_where_it_was(make: Any) -> None:
    for number in range(1, 4):
        dispatcher = make()
        plan = dispatcher.next_join()
        assert (plan.number, plan.splits["foreign"]) == (number, (piece("f", 10 * number - 10, 10 * number),))
        dispatcher.settled(plan, {})


def test_copies_take_up_each_others_plan(make: Any) -> None:
    one, other = make(), make()
    assert one.unsettled() is None is other.unsettled()
    plan = one.next_join()
    assert other.next_join() == plan  # it was planned while `other` thought that nothing was
    one.settled(plan, {})
    other.settled(plan, {})
    assert other.next_join().number == one.next_join().number == 2


def test_lost_slices_are_planned_again(make: Any) -> None:
    dispatcher = make()
    plan = dispatcher.next_join()
    dispatcher.settled(plan, {"primary": plan.splits["primary"]})
    again = dispatcher.next_join()
    assert again.splits == {"primary": (piece("p", 0, 10),), "foreign": (piece("f", 10, 20),)}


def test_a_proposal_becomes_the_next_plan(make: Any) -> None:
    dispatcher = make()
    plan = dispatcher.next_join()
    ahead = dispatcher.propose(dispatcher.known(), {})
    assert (make().journal.planned(), ahead.plan.number) == (1, 2)
    dispatcher.settled(plan, {})
    dispatcher._clock = lambda: 1_000_030.0
    assert dispatcher.next_join(ahead) is ahead.plan
    assert make().unsettled() == ahead.plan
    rows = dispatcher.journal._small.read("journal", [("batch", "=", 2)])
    assert [at.timestamp() for at in rows["at"].to_pylist()] == [1_000_030.0]  # others see it as new as it is


def test_but_not_where_a_slice_before_it_was_lost(make: Any) -> None:
    dispatcher = make()
    plan = dispatcher.next_join()
    ahead = dispatcher.propose(dispatcher.known(), {})
    dispatcher.settled(plan, {"primary": plan.splits["primary"]})
    again = dispatcher.next_join(ahead)
    assert again.splits == {"primary": (piece("p", 0, 10),), "foreign": (piece("f", 10, 20),)}


def test_nor_where_another_process_was_first(make: Any) -> None:
    one, other = make(), make()
    plan = one.next_join()
    ahead = one.propose(one.known(), {})
    one.settled(plan, {})
    second = other.next_join()
    assert one.next_join(ahead) == second
    one.settled(second, {})
    third = one.next_join(ahead)
    assert (third.number, third.splits["primary"]) == (3, (piece("p", 20, 30),))


def test_table_batches(make: Any) -> None:
    retry = make("retry")
    plan = retry.next_of_table(TableSplit("pending", 5, 7, 9))
    assert plan == BatchPlan(
        "z", "main", "retry", 1, 1_000_000_000_000, table=TableSplit("pending", 5, 7, 9), snapshot=True
    )
    assert retry.next_of_table(TableSplit("pending", 6, 8, 9)) == plan == make("retry").unsettled()
    assert make("join").unsettled() is None
    retry.settled(plan, {})
    assert retry.next_of_table(TableSplit("pending", 6, 8, 9)).number == 2
