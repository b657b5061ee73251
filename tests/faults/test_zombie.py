"""Two processes run the same batch at once: one falls asleep at a step, the other overtakes it, the sleeper wakes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.faults.checks import assert_exactly_once
from tests.faults.conftest import Pipeline
from tests.sampled import in_full, some

Make = Callable[[int], Pipeline]


@pytest.mark.parametrize("point", some(["looked-up", "planned", "landed", "published", "claimed", "set-aside"], 6))
def test_a_sleeper_is_overtaken(make: Make, point: str) -> None:
    pipeline = make(200 + len(point))
    asleep = pipeline.folder / "asleep"
    asleep.touch()
    sleeper = pipeline.start("run", "--lease", "1", fault=f"{point}:{asleep}")
    pipeline.wait_for_plan()
    if point == "looked-up":
        pipeline.wait_for_rows("foreign")
        time.sleep(4)
        pipeline.come_late()  # the overtaker finds queries that the sleeper did not
    pipeline.end(pipeline.start("drain", "--no-check"), 0)
    assert sleeper.poll() is None
    assert_exactly_once(pipeline, whole=False)
    pipeline.append("queries/late.jsonl", pipeline.late)
    asleep.unlink()
    pipeline.end(sleeper, 0)
    assert_exactly_once(pipeline, whole=False)
    pipeline.finish()
    assert_exactly_once(pipeline)


@in_full
def test_two_processes_of_one_replica_from_the_start(make: Make) -> None:
    pipeline = make(300)
    pair = [pipeline.start("run", "--lease", "8") for _ in range(2)]
    pipeline.come_late()
    for process in pair:
        pipeline.end(process, 0)
    pipeline.finish()
    assert_exactly_once(pipeline)


def test_two_replicas_share_one_registry(make: Make) -> None:
    pipeline = make(400)
    pair = [pipeline.start("run", "--lease", "10", "--replica", name) for name in ("east", "west")]
    pipeline.come_late()
    for process in pair:
        pipeline.end(process, 0)
    for name in ("east", "west"):
        pipeline.end(pipeline.start("drain", "--no-check", "--replica", name), 0)
    assert_exactly_once(pipeline, replicas=2)
