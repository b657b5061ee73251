"""Backfills over Spark Connect, two dates at a time: each on a session of its own, which must be whole."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from deltalake import DeltaTable

from tests.faults.checks import assert_exactly_once
from tests.faults.conftest import Pipeline
from tests.sampled import in_full, some


@in_full
def test_a_rebuild_and_a_fill_on_a_server(make: Callable[[int], Pipeline]) -> None:
    pipeline = make(500)
    pipeline.end(pipeline.start("drain", "--no-check"), 0)
    pipeline.come_late()
    # The logs are too fresh for the dates to be closed: a rebuild asks for closed dates, a fill has done its work.
    for mode, code in (("rebuild", 1), ("fill", 0)):
        days = ("--from", "2023-11-14", "--to", "2023-11-15", "--jobs", "2")
        pipeline.end(pipeline.start("backfill", *days, "--mode", mode), code)
    assert "rebuilt" in pipeline.log.read_text()
    assert "Traceback" not in pipeline.log.read_text()
    pipeline.finish()
    assert_exactly_once(pipeline)


@in_full
def test_a_rebuild_is_killed_at_any_moment(make: Callable[[int], Pipeline]) -> None:
    """Readers see each date as it was or as it became, ids stay, and the same run goes on once its dates are free."""
    pipeline, rng = make(501), random.Random(7)
    pipeline.config.write_text(
        pipeline.config.read_text() + "close: {lease: 5s, pending: allow, max_out_of_orderness: 1s, idle_timeout: 1s}\n"
    )
    pipeline.come_late()
    pipeline.finish()
    assert_exactly_once(pipeline)
    before, days = ids(pipeline), ("--from", "2023-11-14", "--to", "2023-11-15", "--mode", "rebuild")
    pipeline.config.write_text(pipeline.config.read_text() + "adapter: clickjoin.examples.adapters:TypedClick\n")
    for _ in some(range(4), 4):
        process = pipeline.start("backfill", *days, *run(pipeline))
        time.sleep(rng.uniform(4.0, 12.0))
        process.kill()
        process.wait()
        assert ids(pipeline) == before
        assert all(len(made) == 1 for made in by_day(pipeline).values())
        time.sleep(6)
    pipeline.end(pipeline.start("backfill", *days, *run(pipeline)), 0)
    assert ids(pipeline) == before
    assert set.union(*by_day(pipeline).values()) == {True}


def run(pipeline: Pipeline) -> tuple[str, ...]:
    """The option by which a run goes on that has finished a date, if there is one."""
    rows = DeltaTable(str(pipeline.tables / "dates")).to_pyarrow_table(columns=["run"]).to_pylist()
    return ("--run", rows[0]["run"]) if rows else ()


def ids(pipeline: Pipeline) -> Counter[str]:
    """Ids of the output."""
    return Counter(row["event_id"] for row in output(pipeline))


def by_day(pipeline: Pipeline) -> dict[str, set[bool]]:
    """Of each date, whether its rows are those of the other adapter, which keeps no records."""
    found: dict[str, set[bool]] = {}
    for row in output(pipeline):
        found.setdefault(str(row["event_time"].date()), set()).add(row["foreign_record"] is None)
    return found


def output(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Rows of the output."""
    return DeltaTable(str(pipeline.tables / "joined")).to_pyarrow_table().to_pylist()
