"""Manners between replicas: a batch waits a moment for claims of batches that others planned before it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clickjoin.dispatcher.journal import Journal
from clickjoin.dispatcher.peers import PeerBatch, await_claims, has_claimed, peer_batches
from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.ids import MICROS
from clickjoin.schemas import BATCHES, REGISTRY

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    tables = ArrowTables(str(tmp_path))
    tables.create(BATCHES)
    tables.create(REGISTRY)
    return tables


def planned(delta: ArrowTables, replica: str, seconds: float, number: int = 1, sequence: str = "join") -> BatchPlan:
    at = NOON + timedelta(seconds=seconds)
    plan = BatchPlan("p", replica, sequence, number, int(at.timestamp() * MICROS))
    assert Journal(delta, "p", replica, sequence).plan(plan, plan.planned_at)
    return plan


def settle(delta: ArrowTables, plan: BatchPlan) -> None:
    Journal(delta, "p", plan.replica, plan.sequence).settle(plan.number, {}, plan.planned_at)


def waited(delta: ArrowTables, plan: BatchPlan, after: int, act: Callable[[], Any] = lambda: None) -> int:
    """How often it looks; something happens after so many looks."""
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == after:
            act()

    await_claims(SimpleNamespace(lake=SimpleNamespace(delta=delta, sleep=sleep), plan=plan))  # type: ignore[arg-type]
    return len(looks)


def test_alone(delta: ArrowTables) -> None:
    assert peer_batches(delta, "p", "east") == []
    mine = planned(delta, "east", 0)
    assert peer_batches(delta, "p", "east") == []
    assert waited(delta, mine, 0) == 0


def test_others_are_seen_by_their_newest_join_batch(delta: ArrowTables) -> None:
    planned(delta, "west", 0)
    planned(delta, "west", 1, 2)
    planned(delta, "west", 2, 1, "retry")
    planned(delta, "north", 2, 1, "retry")
    assert peer_batches(delta, "p", "east") == [PeerBatch("west", 2, NOON + timedelta(seconds=1))]


def test_waits_until_they_have_claimed(delta: ArrowTables) -> None:
    theirs, mine = planned(delta, "west", 0), planned(delta, "east", 1)
    assert waited(delta, mine, 3, lambda: delta.commit_txn_only("registry", theirs.txn)) == 3
    assert waited(delta, mine, 0) == 0


def test_or_are_done_without_claims(delta: ArrowTables) -> None:
    theirs, mine = planned(delta, "west", 0), planned(delta, "east", 1)
    assert not has_claimed(delta, "p", peer_batches(delta, "p", "east")[0])
    assert waited(delta, mine, 2, lambda: settle(delta, theirs)) == 2


def test_not_for_who_came_later_nor_at_once(delta: ArrowTables) -> None:
    planned(delta, "west", 1)
    assert waited(delta, planned(delta, "east", 0), 0) == 0
    # at the very same moment the name decides: one of two goes first
    east, west = planned(delta, "east", 5, 2), planned(delta, "west", 5, 2)
    assert waited(delta, east, 0) == 0
    assert waited(delta, west, 1, lambda: delta.commit_txn_only("registry", east.txn)) == 1


def test_not_for_the_dead(delta: ArrowTables) -> None:
    planned(delta, "west", 0)
    assert waited(delta, planned(delta, "east", 11), 0) == 0


def test_not_for_ever(delta: ArrowTables) -> None:
    planned(delta, "west", 0)
    assert waited(delta, planned(delta, "east", 1), 0) == 100
