"""The journal: planned once, settled once, and the same after a restart as before it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable

from clickjoin.dispatcher.dispatcher import Dispatcher
from clickjoin.dispatcher.journal import Journal, JournalState, OffsetsByStream, fold, give_back
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake import committer
from clickjoin.model.batch_plan import BatchPlan, TableSplit
from clickjoin.model.errors import LakeError
from clickjoin.model.split import Problem, SourceOffset
from clickjoin.schemas import BATCHES, BY_NAME

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> str:
    ArrowTables(str(tmp_path)).create(BATCHES)
    return str(tmp_path)


def journal(root: str, replica: str = "main", sequence: str = "join") -> Journal:
    return Journal(ArrowTables(root), "zozo", replica, sequence)


def position(name: str, offset: int) -> SourceOffset:
    return SourceOffset(name, {"read": offset})


def plan(number: int, *positions: SourceOffset, snapshot: bool = False, **more: Any) -> BatchPlan:
    changed = {"foreign": positions} if positions else {}
    return BatchPlan("zozo", "main", "join", number, number, offsets=changed, snapshot=snapshot, **more)


def test_empty(root: str) -> None:
    fresh = journal(root)
    assert (fresh.planned(), fresh.settled(), fresh.load()) == (0, 0, JournalState())


def test_planned_then_settled(root: str) -> None:
    one = journal(root)
    first = plan(1, position("a", 5), snapshot=True)
    assert one.plan(first, NOW)
    assert one.load() == JournalState(1, first, {"foreign": {"a": position("a", 5)}})
    assert one.settle(1, {}, NOW)
    assert one.load() == JournalState(1, None, {"foreign": {"a": position("a", 5)}}, read_until=1)


def test_rows_that_are_gone_are_named(root: str) -> None:
    """Transactions say that batches were planned, and their rows are in no file."""
    one = journal(root)
    for number in (1, 2):
        assert one.plan(plan(number, position("a", 5 * number), snapshot=number == 1), NOW)
        assert one.settle(number, {}, NOW)
    DeltaTable(f"{root}/{BATCHES.name}").delete("batch = 2 AND state = 'planned'")
    with pytest.raises(LakeError, match=r"2 batches of zozo/main/join were planned, and there is no row of batch 2"):
        journal(root).load()


def test_a_stream_has_passed_what_batches_that_are_done_have(root: str) -> None:
    one = journal(root)
    for number, mark in ((1, 10), (2, 20)):
        batch = plan(number, snapshot=True, watermarks={"primary": mark})
        one.plan(batch, NOW)
        assert dict(one.load().passed) == ({"primary": 10} if number == 2 else {})
        one.settle(number, {}, NOW)
    assert dict(one.load().passed) == {"primary": 20}


@pytest.mark.parametrize(
    ("more", "lost", "until"),
    [
        ({}, {}, 2),
        ({"backlog_events": 1}, {}, 1),
        ({"backlog_bytes": 1}, {}, 1),
        ({"problems": (Problem("unreadable", "a", ""),)}, {}, 1),
        ({}, {"foreign": {"a": None}}, 1),
    ],
)
def test_up_to_when_all_was_read(root: str, more: dict[str, Any], lost: Any, until: int) -> None:
    """The newest plan that is done and left nothing unread says it."""
    one = journal(root)
    one.plan(plan(1, position("a", 5), snapshot=True), NOW)
    one.settle(1, {}, NOW)
    one.plan(plan(2, position("a", 7), **more), NOW)
    assert one.load().read_until == 1
    one.settle(2, lost, NOW)
    assert one.load().read_until == until


def test_a_number_is_planned_and_settled_once(root: str) -> None:
    one, other = journal(root), journal(root)
    assert one.plan(plan(1, position("a", 5), snapshot=True), NOW)
    assert not other.plan(plan(1, position("b", 6), snapshot=True), NOW)
    assert other.settle(1, {}, NOW)
    assert not one.settle(1, {}, NOW)
    assert other.load().offsets == {"foreign": {"a": position("a", 5)}}
    assert len(ArrowTables(root).read("journal")) == 2


def test_two_threads_plan_and_settle_once(root: str) -> None:
    rounds, copies = 12, 2
    barrier = Barrier(copies, timeout=30)

    def work(name: str) -> list[tuple[bool, bool]]:
        mine = journal(root)
        done = []
        for number in range(1, rounds + 1):
            barrier.wait()
            planned = mine.plan(plan(number, position(name, number), snapshot=number == 1), NOW)
            barrier.wait()
            done.append((planned, mine.settle(number, {}, NOW)))
        return done

    with ThreadPoolExecutor(copies) as pool:
        one, other = pool.map(work, ("a", "b"))
    for mine, theirs in zip(one, other, strict=True):
        assert sorted([mine[0], theirs[0]]) == sorted([mine[1], theirs[1]]) == [False, True]
    rows = ArrowTables(root).read("journal").to_pylist()
    assert sorted((row["batch"], row["state"]) for row in rows) == [
        (number, state) for number in range(1, rounds + 1) for state in ("planned", "settled")
    ]
    winners = {"a": [n for n, won in enumerate(one, 1) if won[0]], "b": [n for n, won in enumerate(other, 1) if won[0]]}
    expected = {name: position(name, max(numbers)) for name, numbers in winners.items() if numbers}
    assert journal(root).load() == JournalState(rounds, None, {"foreign": expected}, read_until=rounds)


def test_a_plan_of_a_process_that_was_killed_is_flushed_before_it_is_worked_on(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut could keep what the batch commits, and not its plan."""
    chosen = SimpleNamespace(pipeline="zozo", inputs=())
    flushed: list[str] = []
    monkeypatch.setattr(committer, "_flush", lambda uri, *_: flushed.append(Path(uri).name))
    journal(root).plan(plan(1), NOW)
    flushed.clear()
    dispatcher = Dispatcher(chosen, ArrowTables(root), "main", "join")  # type: ignore[arg-type]
    assert dispatcher.unsettled() == plan(1)
    assert flushed == ["journal"]


def test_the_versions_that_a_plan_names_are_flushed_before_it(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a power cut could keep the plan, and not what it is to read."""
    delta = ArrowTables(root)
    delta.create(BY_NAME["pending"])
    flushed: list[str] = []
    monkeypatch.setattr(committer, "_flush", lambda uri, *_: flushed.append(Path(uri).name))
    assert journal(root).plan(plan(1, table=TableSplit("pending", 0, due=0, limit=1)), NOW)
    assert flushed == ["pending", "journal"]


def test_replicas_and_sequences_are_apart(root: str) -> None:
    keys = [("main", "join"), ("east", "join"), ("main", "retry")]
    for at, key in enumerate(keys, 1):
        first = replace(plan(1, position("x", at), snapshot=True), replica=key[0], sequence=key[1])
        assert journal(root, *key).plan(first, NOW)
    assert journal(root, "east").settle(1, {}, NOW)
    assert [journal(root, *key).settled() for key in keys] == [0, 1, 0]
    assert [journal(root, *key).load().offsets["foreign"]["x"].payload["read"] for key in keys] == [1, 2, 3]
    assert journal(root, "west").load() == JournalState()


def test_restart_equals_memory_over_snapshots(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond two snapshots, a load reads the newest rows alone, and still knows every position."""
    every, last = 20, 115
    monkeypatch.setattr("clickjoin.dispatcher.journal.SNAPSHOT_EVERY", every)
    mine, known, settled = journal(root), OffsetsByStream(), 0
    fold(known, {"primary": [position("once", 1)]})
    for number in range(1, last + 1):
        batch = plan(number, position(f"file{number % 7}", number))
        fold(known, batch.offsets)
        if (number - 1) % every == 0:
            whole = {stream: tuple(items.values()) for stream, items in known.items()}
            batch = replace(batch, offsets=whole, snapshot=True)
        assert mine.plan(batch, NOW)
        if number in (every, every + 1, every + 2, 2 * every + 2, 99, last):
            assert journal(root).load() == JournalState(number, batch, known, read_until=settled)
            assert mine.settle(number, {}, NOW)
            settled = number
    assert journal(root).load() == mine.load() == JournalState(last, None, known, read_until=last)


def test_lost_splits_are_given_back(root: str) -> None:
    """To what their source has said, until a later plan says what holds from then on."""
    one = journal(root)
    for number, offset in ((1, 10), (2, 30), (3, 60)):
        one.plan(plan(number, position("a", offset), position("b", offset), snapshot=number == 1), NOW)
        one.settle(number, {"foreign": {"a": position("a", 10), "b": None}} if number == 2 else {}, NOW)
        known = journal(root).load().offsets["foreign"]
        assert known == {"a": position("a", 10 if number == 2 else offset), "b": position("b", offset)}


def test_what_no_source_set_back_stays() -> None:
    offsets = {"foreign": {"a": position("a", 10)}}
    give_back(offsets, {"foreign": {"a": None}, "primary": {"a": position("a", 5)}})
    assert offsets == {"foreign": {"a": position("a", 10)}, "primary": {"a": position("a", 5)}}
