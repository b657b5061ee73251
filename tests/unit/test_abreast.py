"""Clicks do not run ahead of a backlog of queries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.dispatcher.pacing import abreast
from clickjoin.model.split import Budget, SourcePlan, Split

BUDGET = Budget(500_000, 256 << 20)


def plan(taken: int, backlog: int) -> SourcePlan:
    """A plan of so many events, and so many that are left."""
    return SourcePlan((Split("g", events=taken),) if taken else (), backlog_events=backlog)


@pytest.mark.parametrize(
    ("primary", "foreign", "most"),
    [
        ((500_000, 0), (500_000, 220_000), None),  # no backlog of queries
        ((500_000, 6_000_000), (500_000, 220_000), 48_462),  # a thirteenth of both, less an eighth of it
        ((500_000, 500_000), (900, 0), None),  # fewer than a twentieth of a batch: fresh clicks beside an old backlog
        ((500_000, 90_000_000), (30_000, 0), 25_000),
        ((0, 1_000), (500_000, 0), 25_000),  # queries that cannot be read just now
        ((500_000, 1_000_000), (0, 0), None),
    ],
)
def test_the_same_share(primary: tuple[int, int], foreign: tuple[int, int], most: int | None) -> None:
    found = abreast(BUDGET, plan(*primary), plan(*foreign))
    assert (found.max_events if found else None) == most
    assert found is None or found.max_bytes == BUDGET.max_bytes


counts = st.integers(0, 10**7)


@given(st.integers(1, 10**6), counts, counts, counts, counts)
def test_it_always_goes_on(most: int, asked: int, left: int, taken: int, more: int) -> None:
    found = abreast(Budget(most, 1), plan(asked, left), plan(taken, more))
    assert found is None or 1 <= found.max_events < taken
