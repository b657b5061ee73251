"""A process is killed at every step of a batch, on its first run and on its replay; then the ids are counted."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

import pytest

from clickjoin.model.failpoint import POINTS
from tests.faults.checks import assert_exactly_once
from tests.faults.conftest import Pipeline
from tests.sampled import in_full, some

Make = Callable[..., Pipeline]
KILLS = len(some(range(6), 2))
# Before and after the claim in each run; between, `tests/spark` stops batches, and those of Spark `tests/conformance`.
AT = ("claimed", "planned", "published", "looked-up", "landed", "set-aside", "settled")


def test_every_step_is_known() -> None:
    assert set(AT) == set(POINTS)


@pytest.mark.parametrize(
    ("engine", "point"),
    [
        *(("arrow", point) for point in some(AT, 3)),
        *(pytest.param("spark", point, marks=in_full) for point in some(AT, 7)),
    ],
)
def test_killed_at_a_step_and_again_on_replay(make: Make, engine: str, point: str) -> None:
    pipeline = make(POINTS.index(point), engine)
    pipeline.end(pipeline.start("drain", "--no-check", fault=point), -signal.SIGKILL)
    assert_exactly_once(pipeline, whole=False)
    pipeline.end(pipeline.start("drain", "--no-check", fault=point), -signal.SIGKILL, 0)
    assert_exactly_once(pipeline, whole=False)
    pipeline.come_late()
    pipeline.finish()
    assert_exactly_once(pipeline)


@in_full
def test_killed_at_any_moment(make: Make) -> None:
    pipeline, rng = make(100), random.Random(5)
    for kill in range(KILLS):
        process = pipeline.start("run")
        time.sleep(rng.uniform(2.0, 7.0))
        process.kill()
        process.wait()
        assert_exactly_once(pipeline, whole=False)
        if kill == KILLS // 2 - 1:
            pipeline.come_late()
    pipeline.finish()
    assert_exactly_once(pipeline)
