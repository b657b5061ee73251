"""Backfills over Spark Connect, two dates at a time: each on a session of its own, which must be whole."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.checks import assert_exactly_once
from tests.faults.conftest import Pipeline


def test_a_rebuild_and_a_fill_on_a_server(make: Callable[[int], Pipeline]) -> None:
    pipeline = make(500)
    pipeline.end(pipeline.start("drain", "--no-check"), 0)
    pipeline.come_late()
    for mode in ("rebuild", "fill"):
        days = ("--from", "2023-11-14", "--to", "2023-11-15", "--jobs", "2")
        # The logs are too fresh for the dates to be closed.
        pipeline.end(pipeline.start("backfill", *days, "--mode", mode), 1)
    assert "rebuilt" in pipeline.log.read_text()
    assert "Traceback" not in pipeline.log.read_text()
    pipeline.finish()
    assert_exactly_once(pipeline)
