"""What holds the watermark of an output: of two inputs the one that stalls is named, and no longer once it goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from clickjoin.chain.rests_on import rests_on
from clickjoin.config import Pipeline
from clickjoin.config.sections import Batch, Process
from clickjoin.dispatcher.dispatcher import Dispatcher
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake_setup import initialise
from clickjoin.model.ids import micros_of
from clickjoin.model.split import Budget, SourceOffset, SourcePlan
from clickjoin.model.txn import Txn
from clickjoin.sources.open import open_source
from tests.unit.lakes import NOON, pipeline

TABLES = {"primary": "q", "foreign": "c"}


class Join:
    """A join of two streams of files that lands what it is given, without Spark."""

    def __init__(self, folder: Path, process: Process | None = None, *, heartbeats: bool = False) -> None:
        self.folder, self.now = folder, NOON
        batch = Batch(heartbeats=heartbeats)
        self.pipeline = pipeline(folder).model_copy(update={"process": process, "batch": batch})
        initialise(self.pipeline)
        self.delta = ArrowTables(self.pipeline.root)
        sources = {item.name: open_source(item.source) for item in self.pipeline.inputs}
        self.join = Dispatcher(self.pipeline, self.delta, "main", "join", sources, lambda: self.now.timestamp())

    def log(self, stream: str, name: str, minute: float) -> Path:
        """A line more, of an event of so many minutes after noon, written at that time."""
        self.now = NOON + timedelta(minutes=minute)
        file = self.folder / f"logs/{TABLES[stream]}/{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as out:
            out.write(json.dumps({"id": f"h:1:{micros_of(self.now)}", "q": "h:1:1"}) + "\n")
        os.utime(file, (self.now.timestamp(), self.now.timestamp()))
        return file

    def batch(self, **landed: tuple[float, str]) -> None:
        """Plan, land and settle: by stream the minute of its newest event, and the file that it is in."""
        plan = self.join.next_join()
        assert plan
        times = {}
        for stream, (minute, path) in landed.items():
            at = NOON + timedelta(minutes=minute)
            times[stream] = micros_of(at)
            row = {"event_id": f"h:1:{micros_of(at)}", "event_time": at, "bucket": "x", "path": path, "replica": "main"}
            self.delta.append(stream, [row], Txn(f"p/main/{stream}", plan.number))
        self.join.settled(plan, {}, times)
        mark = min(plan.watermarks.values()) if len(plan.watermarks) == len(TABLES) else None
        at = None if mark is None else NOON + timedelta(microseconds=mark - micros_of(NOON))
        row = {"replica": "main", "sequence": "join", "batch": plan.number, "watermark": at, "settled_at": self.now}
        self.delta.append("metrics", [row], Txn("p/main/join", plan.number))


def both(join: Join, minute: int) -> tuple[Path, Path]:
    """A line more in both streams, and a batch of them."""
    files = join.log("primary", "a", minute), join.log("foreign", "b", minute)
    join.batch(primary=(minute, str(files[0])), foreign=(minute, str(files[1])))
    return files


def test_an_input_that_stalls_is_named_until_it_goes_on(tmp_path: Path) -> None:
    join = Join(tmp_path)
    queries, clicks = both(join, 0)
    both(join, 1)
    for minute in (2, 3, 4):
        join.log("foreign", "b", minute)
        join.batch(foreign=(minute, str(clicks)))
    found = rests_on(join.pipeline)
    assert (found.stream, found.place) == ("primary", str(queries))
    assert found.since == NOON + timedelta(minutes=2)  # the plan after that of its last event
    assert f"its newest event is of 2026-03-01 12:01:00 UTC, in {queries}" in found.why
    assert "nothing was written since 2026-03-01 12:01:00 UTC" in found.why
    assert str(clicks) not in found.why
    join.log("primary", "a", 6)  # it lives, and is not read yet
    assert f"unread in {queries}" in rests_on(join.pipeline).why
    join.batch(primary=(6, str(queries)))
    join.log("primary", "a", 7)
    join.batch(primary=(7, str(queries)))
    found = rests_on(join.pipeline)
    assert (found.stream, found.place) == ("foreign", str(clicks))
    assert str(queries) not in found.why


def test_a_stream_that_is_gone_is_named(tmp_path: Path) -> None:
    join = Join(tmp_path)
    both(join, 0)
    queries, clicks = both(join, 1)
    queries.unlink()
    queries.parent.rmdir()
    join.log("foreign", "b", 2)
    join.batch(foreign=(2, str(clicks)))
    found = rests_on(join.pipeline)
    assert found.stream == "primary"
    assert str(queries.parent) in found.why


def test_what_waits_is_no_stream(tmp_path: Path) -> None:
    join = Join(tmp_path)
    both(join, 0)
    both(join, 20)
    both(join, 21)
    row = {"event_id": "w", "event_time": NOON, "bucket": "x", "shard": 0, "state": "waiting", "batch": 1, "round": 0}
    join.delta.append("pending", [row | {"replica": "main", "attempt": 1}])
    found = rests_on(join.pipeline)
    assert (found.stream, found.time) == ("", NOON)
    assert "an event of that time waits" in found.why


def test_no_batch_yet(tmp_path: Path) -> None:
    made: Pipeline = Join(tmp_path).pipeline
    assert rests_on(made).time is None


def test_time_passes_where_nothing_comes_and_the_output_is_processed(tmp_path: Path) -> None:
    join = Join(tmp_path, Process(key=("item",)))
    both(join, 0)
    both(join, 30)
    assert rests_on(join.pipeline).time == NOON - timedelta(minutes=10)
    join.batch()  # all is read: as far as the newest event
    assert rests_on(join.pipeline).time == NOON + timedelta(minutes=20)
    assert join.join.next_join() is None
    join.now = NOON + timedelta(minutes=44)
    assert join.join.next_join() is None  # it may be merely late
    join.now = NOON + timedelta(minutes=50)
    join.batch()  # both are idle: as far as the clock
    assert rests_on(join.pipeline).time == NOON + timedelta(minutes=40)
    join.now = NOON + timedelta(minutes=64)
    assert join.join.next_join() is None
    join.now = NOON + timedelta(minutes=65)
    join.batch()
    assert rests_on(join.pipeline).time == NOON + timedelta(minutes=55)


def test_one_input_that_stalls_holds_time_until_it_is_idle(tmp_path: Path) -> None:
    join = Join(tmp_path, Process(key=("item",)))
    both(join, 0)
    queries, _ = both(join, 30)
    for minute in (35, 40):
        clicks = join.log("foreign", "b", minute)
        join.batch(foreign=(minute, str(clicks)))
    found = rests_on(join.pipeline)
    assert (found.time, found.place) == (NOON + timedelta(minutes=20), str(queries))
    clicks = join.log("foreign", "b", 50)
    join.batch(foreign=(50, str(clicks)))
    join.batch()
    assert rests_on(join.pipeline).time == NOON + timedelta(minutes=40)


def test_the_last_seconds_are_final_once_nothing_has_come_for_some(tmp_path: Path) -> None:
    join = Join(tmp_path, Process(key=("item",)))
    both(join, 0)
    for second in (10, 20):
        clicks, queries = join.log("foreign", "b", second / 60), join.log("primary", "a", second / 60)
        join.batch(foreign=(second / 60, str(clicks)), primary=(second / 60, str(queries)))
    assert join.join.next_join() is None
    join.now += timedelta(seconds=5)
    join.batch()
    assert rests_on(join.pipeline).time == NOON + timedelta(seconds=20) - timedelta(minutes=10)
    join.now += timedelta(seconds=5)
    assert join.join.next_join() is None


def test_heartbeats_of_a_pipeline_that_another_one_reads(tmp_path: Path) -> None:
    join = Join(tmp_path, heartbeats=True)
    both(join, 0)
    join.batch()
    assert rests_on(join.pipeline).time == NOON - timedelta(minutes=10)


def test_a_stream_at_rest_has_come_as_far_as_when_it_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is paused between its look and its plan knows nothing of what was written meanwhile."""
    join = Join(tmp_path, heartbeats=True)
    both(join, 0)
    join.now += timedelta(minutes=20)
    source = join.join._sources["foreign"]
    look = source.plan

    def pausing(offsets: Mapping[str, SourceOffset], budget: Budget) -> SourcePlan:
        found = look(offsets, budget)
        join.log("primary", "a", 80)
        join.now += timedelta(hours=1)
        return found

    monkeypatch.setattr(source, "plan", pausing)
    plan = join.join.next_join()
    assert plan
    assert not plan.splits
    assert plan.backlog_events == 1  # or clicks would be given up whose queries were written meanwhile
    assert set(plan.watermarks.values()) == {micros_of(NOON + timedelta(minutes=10))}


def test_no_batch_without_records_where_nobody_asks_the_time(tmp_path: Path) -> None:
    join = Join(tmp_path)
    both(join, 0)
    join.now = NOON + timedelta(days=1)
    assert join.join.next_join() is None
