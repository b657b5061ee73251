"""The boundary: per shard, and only forward, whoever moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.shards import expired_sql
from clickjoin.registry.boundary import advance, lift_floor, load_boundary, load_bounds
from clickjoin.schemas import BOUNDARY

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def at(hours: float) -> datetime:
    return DAY + timedelta(hours=hours)


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    tables = ArrowTables(str(tmp_path))
    tables.create(BOUNDARY)
    return tables


def test_none_at_first(delta: ArrowTables) -> None:
    assert load_boundary(delta) == {}
    assert expired_sql({}) == "FALSE"


def test_only_forward(delta: ArrowTables) -> None:
    advance(delta, 2, at(5), DAY)
    advance(delta, 2, at(3), DAY)
    assert load_boundary(delta) == {0: at(5), 1: at(5)}
    advance(delta, 3, at(4), DAY)
    assert load_boundary(delta) == {0: at(5), 1: at(5), 2: at(4)}
    advance(delta, 3, at(6), DAY)
    assert load_boundary(delta) == {0: at(6), 1: at(6), 2: at(6)}


def test_the_floor_of_primary_is_no_shard(delta: ArrowTables) -> None:
    advance(delta, 1, at(5), DAY)
    for hours, there in ((3, 3), (2, 3), (4, 4)):
        lift_floor(delta, at(hours), DAY)
        assert load_bounds(delta) == ({0: at(5)}, at(there))
    assert load_boundary(delta) == {0: at(5)}


def test_a_late_mover_cannot_move_back(delta: ArrowTables) -> None:
    # Rows of two movers that did not see each other: the highest holds, whatever their order.
    for hours in (7, 2, 4):
        delta.append("registry_boundary", [{"shard": 0, "boundary": at(hours), "at": DAY}])
    assert load_boundary(delta) == {0: at(7)}


@settings(max_examples=15, deadline=None)
@given(moves=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 48)), min_size=1, max_size=5))
def test_never_back(tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[int, int]]) -> None:
    delta = ArrowTables(str(tmp_path_factory.mktemp("boundary")))
    delta.create(BOUNDARY)
    before: dict[int, datetime] = {}
    for shards, hours in moves:
        advance(delta, shards, at(hours), DAY)
        now = load_boundary(delta)
        assert all(now[shard] >= moment for shard, moment in before.items())
        assert all(now[shard] >= at(hours) for shard in range(shards))
        before = now


def test_sql_of_one_moment() -> None:
    assert expired_sql({1: at(1), 0: at(1)}) == (
        "(shard IN (0, 1) AND event_time < TIMESTAMP '2026-01-01 01:00:00.000000+00:00')"
    )


def test_sql_of_several() -> None:
    assert expired_sql({1: at(2), 0: at(1)}) == (
        "COALESCE(event_time < CASE shard WHEN 0 THEN TIMESTAMP '2026-01-01 01:00:00.000000+00:00' "
        "WHEN 1 THEN TIMESTAMP '2026-01-01 02:00:00.000000+00:00' END, FALSE)"
    )
