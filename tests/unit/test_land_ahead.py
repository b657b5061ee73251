"""What was written ahead is a batch's own only if the batch would write the same."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from clickjoin.engines.arrow.land_ahead import LandedAhead
from clickjoin.engines.arrow.landing import Written
from clickjoin.kernel.forgotten import Forgotten
from clickjoin.kernel.parquet_rows import KEYS
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.shards import Timeline

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLAN = BatchPlan("shop", "main", "join", 7, 1)
SHARDS, MORE = Timeline(((NOON, 4),)), Timeline(((NOON, 4), (NOON.replace(hour=13), 8)))
ONE = Forgotten(KEYS.empty_table().from_pylist([{"event_id": "a", "event_time": NOON}], schema=KEYS))
TWO = Forgotten(KEYS.empty_table().from_pylist([{"event_id": "b", "event_time": NOON}], schema=KEYS))
FILES = {"foreign": Written([], [], {"good": 1, "bad": 0})}


def batch(plan: BatchPlan = PLAN, timeline: Timeline = SHARDS, **forgotten: Forgotten) -> Any:
    return SimpleNamespace(plan=plan, timeline=timeline, forgotten=forgotten)


@pytest.mark.parametrize("forgotten", [{}, {"foreign": ONE}])
def test_it_is_where_all_is_as_it_was(forgotten: dict[str, Forgotten]) -> None:
    assert LandedAhead(PLAN, SHARDS, forgotten, FILES, time.time()).of(batch(**forgotten)) == FILES


@pytest.mark.parametrize(
    "other",
    [
        batch(BatchPlan("shop", "main", "join", 8, 1), foreign=ONE),
        batch(BatchPlan("shop", "main", "join", 7, 2), foreign=ONE),
        batch(timeline=MORE, foreign=ONE),
        batch(foreign=TWO),
        batch(),
    ],
    ids=["another batch", "another plan of it", "other shards", "others forgotten", "none forgotten"],
)
def test_it_is_not_elsewhere(other: Any) -> None:
    assert LandedAhead(PLAN, SHARDS, {"foreign": ONE}, FILES, time.time()).of(other) == {}


def test_it_is_not_after_a_long_pause() -> None:
    """No plan under way has held it back from gc meanwhile, which could take it away under the commit."""
    assert LandedAhead(PLAN, SHARDS, {}, FILES, time.time() - 3600).of(batch()) == {}
