"""Manners between replicas: a batch waits a moment for claims of batches that others planned before it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clickjoin.dispatcher.journal import Journal
from clickjoin.dispatcher.others import Other, await_claims, has_claimed, others
from clickjoin.dispatcher.plan import BatchPlan
from clickjoin.events import MICROS
from clickjoin.lake import SmallTables
from clickjoin.tables import BATCHES, REGISTRY

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def small(tmp_path: Path) -> SmallTables:
    tables = SmallTables(str(tmp_path))
    tables.create(BATCHES)
    tables.create(REGISTRY)
    return tables


def planned(small: SmallTables, replica: str, seconds: float, number: int = 1, sequence: str = "join") -> BatchPlan:
    at = NOON + timedelta(seconds=seconds)
    plan = BatchPlan("p", replica, sequence, number, int(at.timestamp() * MICROS))
    assert Journal(small, "p", replica, sequence).plan(plan, plan.planned_at)
    return plan


def settle(small: SmallTables, plan: BatchPlan) -> None:
    Journal(small, "p", plan.replica, plan.sequence).settle(plan.number, {}, plan.planned_at)


def waited(small: SmallTables, plan: BatchPlan, after: int, act: Callable[[], Any] = lambda: None) -> int:
    """How often it looks; something happens after so many looks."""
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == after:
            act()

    await_claims(SimpleNamespace(lake=SimpleNamespace(small=small, sleep=sleep), plan=plan))  # type: ignore[arg-type]
    return len(looks)


def test_alone(small: SmallTables) -> None:
    assert others(small, "p", "east") == []
    mine = planned(small, "east", 0)
    assert others(small, "p", "east") == []
    assert waited(small, mine, 0) == 0


def test_others_are_seen_by_their_newest_join_batch(small: SmallTables) -> None:
    planned(small, "west", 0)
    planned(small, "west", 1, 2)
    planned(small, "west", 2, 1, "retry")
    planned(small, "north", 2, 1, "retry")
    assert others(small, "p", "east") == [Other("west", 2, NOON + timedelta(seconds=1))]


def test_waits_until_they_have_claimed(small: SmallTables) -> None:
    theirs, mine = planned(small, "west", 0), planned(small, "east", 1)
    assert waited(small, mine, 3, lambda: small.fix("registry", theirs.txn)) == 3
    assert waited(small, mine, 0) == 0


def test_or_are_done_without_claims(small: SmallTables) -> None:
    theirs, mine = planned(small, "west", 0), planned(small, "east", 1)
    assert not has_claimed(small, "p", others(small, "p", "east")[0])
    assert waited(small, mine, 2, lambda: settle(small, theirs)) == 2


def test_not_for_who_came_later_nor_at_once(small: SmallTables) -> None:
    planned(small, "west", 1)
    assert waited(small, planned(small, "east", 0), 0) == 0
    # at the very same moment the name decides: one of two goes first
    east, west = planned(small, "east", 5, 2), planned(small, "west", 5, 2)
    assert waited(small, east, 0) == 0
    assert waited(small, west, 1, lambda: small.fix("registry", east.txn)) == 1


def test_not_for_the_dead(small: SmallTables) -> None:
    planned(small, "west", 0)
    assert waited(small, planned(small, "east", 11), 0) == 0


def test_not_for_ever(small: SmallTables) -> None:
    planned(small, "west", 0)
    assert waited(small, planned(small, "east", 1), 0) == 100
