"""Resharding: entries are appended, lie in the future of every clock, and are in force once no batch can differ."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clickjoin.config import Pipeline
from clickjoin.dispatcher.journal import Journal
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake_setup import initialise
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.ids import MICROS
from clickjoin.registry import reshard as module
from clickjoin.registry.reshard import earliest, entries, reshard
from clickjoin.registry.shards import load_timeline

NOW = datetime(2026, 3, 10, 12, 30, tzinfo=UTC)
T14, T15, T16 = (datetime(2026, 3, 10, hour, tzinfo=UTC) for hour in (14, 15, 16))
SIDE = {"source": {"kind": "files", "path": "/logs/*"}, "event_id": "id", "event_time": "embedded"}


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    found = Pipeline.model_validate(
        {
            "pipeline": "p",
            "engine": "arrow",
            "lake": str(tmp_path),
            "primary": SIDE,
            "foreign": {**SIDE, "primary_id": "q", "primary_time": "embedded"},
        }
    )
    initialise(found)
    return found


@pytest.fixture
def delta(pipeline: Pipeline) -> ArrowTables:
    return ArrowTables(pipeline.root)


def plan(delta: ArrowTables, at: datetime, number: int = 1) -> None:
    batch = BatchPlan("p", "main", "join", number, int(at.timestamp() * MICROS))
    assert Journal(delta, "p", "main", "join").plan(batch, batch.planned_at)


def shards_of(delta: ArrowTables) -> list[int]:
    return [count for _, count in load_timeline(delta).entries]


def test_grows_and_shrinks(delta: ArrowTables, pipeline: Pipeline) -> None:
    plan(delta, NOW)
    timeline = reshard(delta, pipeline, 12, T14, NOW)
    assert [count for _, count in timeline.entries] == [4, 12]
    reshard(delta, pipeline, 6, T15, NOW)
    timeline = load_timeline(delta)
    assert [timeline.shards_at(moment) for moment in (NOW, T14, T15)] == [4, 12, 6]
    assert [(entry.shards, entry.void) for entry in entries(delta)] == [(4, False), (12, False), (6, False)]


def test_as_soon_as_is_safe_by_default(delta: ArrowTables, pipeline: Pipeline) -> None:
    assert reshard(delta, pipeline, 12, None, NOW).entries[-1] == (datetime(2026, 3, 10, 13, tzinfo=UTC), 12)
    late = NOW + timedelta(minutes=25)  # too near to the hour for two clocks' skew
    assert earliest(pipeline, late) == T14


@pytest.mark.parametrize(
    ("shards", "since", "why"),
    [
        (12, NOW, "not later than every clock"),
        (12, NOW - timedelta(days=9), "not later than every clock"),
        (12, NOW + timedelta(minutes=9), "not later than every clock"),
        (0, T15, "must be from 1"),
        (-1, T15, "must be from 1"),
        (10_001, T15, "must be from 1 to 10000"),
        (12, T15 + timedelta(minutes=1), "lies inside a bucket"),
        (8, T15, "over 8 shards already"),
        (12, T14, "entries are never edited"),
        (12, datetime(2026, 3, 10, 13, tzinfo=UTC), "entries are never edited"),
    ],
)
def test_refused(delta: ArrowTables, pipeline: Pipeline, shards: int, since: datetime, why: str) -> None:
    reshard(delta, pipeline, 8, T14, NOW)
    with pytest.raises(ConfigError, match=why):
        reshard(delta, pipeline, shards, since, NOW)
    assert shards_of(delta) == [4, 8]


def test_too_late_where_a_batch_may_hold_such_events(delta: ArrowTables, pipeline: Pipeline) -> None:
    plan(delta, T14 - timedelta(minutes=5))  # by a clock that runs ahead: its batch may hold events of 14:00
    with pytest.raises(LakeError, match="came too late and is void"):
        reshard(delta, pipeline, 12, T14, NOW)
    assert shards_of(delta) == [4]
    assert [(entry.shards, entry.void) for entry in entries(delta)] == [(4, False), (12, True)]
    with pytest.raises(ConfigError, match="already"):
        reshard(delta, pipeline, 12, T14, NOW)
    assert [count for _, count in reshard(delta, pipeline, 12, T15, NOW).entries] == [4, 12]


def test_a_batch_planned_at_the_last_moment_is_seen(
    delta: ArrowTables, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[datetime | None] = []
    look = module.newest_plan

    def then_plan(tables: ArrowTables) -> datetime | None:
        looked.append(look(tables))
        if len(looked) == 1:
            plan(ArrowTables(pipeline.root), T14 - timedelta(minutes=1))
        return looked[-1]

    monkeypatch.setattr(module, "newest_plan", then_plan)
    with pytest.raises(LakeError, match="void"):
        reshard(delta, pipeline, 12, T14, NOW)
    assert len(looked) == 2
    assert shards_of(delta) == [4]


def test_one_of_two_at_once_is_refused(delta: ArrowTables, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    append = delta.append

    def after_another(*args: Any) -> bool:
        reshard(ArrowTables(pipeline.root), pipeline, 6, T16, NOW)
        return append(*args)

    monkeypatch.setattr(delta, "append", after_another)
    with pytest.raises(LakeError, match="changed by another"):
        reshard(delta, pipeline, 12, T15, NOW)
    assert shards_of(delta) == [4, 6]
