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

Make = Callable[[int], Pipeline]


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_step_and_again_on_replay(make: Make, point: str) -> None:
    pipeline = make(POINTS.index(point))
    pipeline.end(pipeline.start("drain", "--no-check", fault=point), -signal.SIGKILL)
    assert_exactly_once(pipeline, whole=False)
    pipeline.end(pipeline.start("drain", "--no-check", fault=point), -signal.SIGKILL, 0)
    assert_exactly_once(pipeline, whole=False)
    pipeline.come_late()
    pipeline.finish()
    assert_exactly_once(pipeline)


def test_killed_at_any_moment(make: Make) -> None:
    pipeline, rng = make(100), random.Random(5)
    for kill in range(6):
        process = pipeline.start("run")
        time.sleep(rng.uniform(2.0, 7.0))
        process.kill()
        process.wait()
        assert_exactly_once(pipeline, whole=False)
        if kill == 2:
            pipeline.come_late()
    pipeline.finish()
    assert_exactly_once(pipeline)
