"""The examples of docs/consumers.md, run as they stand there."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from checks.blocks import code
from clickjoin.jobs.upkeep import forget
from tests.sampled import in_full
from tests.spark.bench import Bench, click, event_id, query

BLOCKS = code("consumers.md", "python", 7)
Q = query("q")
SPARK, ARROW, DUCKDB, POLARS, STREAM, VERSION, TIME = range(7)


@pytest.fixture
def bench(make: Any) -> Bench:
    bench: Bench = make()
    bench.queries(Q)
    bench.clicks(*(click(f"c{n}", n, Q) for n in range(5)))
    bench.join()
    return bench


def run(block: int, **names: Any) -> dict[str, Any]:
    exec(compile(BLOCKS[block], "docs/consumers.md", "exec"), names)
    return names


def table(bench: Bench) -> str:
    return f"{bench.pipeline.root}/joined"


def ids(low: int, high: int) -> list[str]:
    return [event_id(f"c{n}", n) for n in range(low, high)]


@in_full
def test_at_once(bench: Bench) -> None:
    found = run(SPARK, spark=bench.spark, table=table(bench))["rows"]
    assert sorted(row["event_id"] for row in found.collect()) == ids(0, 5)
    names = run(ARROW, table=table(bench))
    assert sorted(names["rows"]["event_id"].to_pylist()) == ids(0, 5)
    assert len(names["frame"]) == 5


def test_sql_without_spark(bench: Bench) -> None:
    hours = run(DUCKDB, table=table(bench))["hours"]
    assert sum(clicks for _, clicks in hours) == 5
    clicks = run(POLARS, table=table(bench))["clicks"]
    assert sorted(clicks["event_id"].to_list()) == ids(0, 5)


def test_a_stream_gives_each_row_once_through_compaction(bench: Bench, tmp_path: Path) -> None:
    given = {
        "spark": bench.spark,
        "table": table(bench),
        "checkpoint": str(tmp_path / "at"),
        "copy": str(tmp_path / "copy"),
    }
    run(STREAM, **given)
    bench.clicks(*(click(f"c{n}", n, Q) for n in range(5, 8)))
    bench.join()
    bench.spark.sql(f"OPTIMIZE delta.`{table(bench)}`").collect()
    run(STREAM, **given)
    bench.clicks(*(click(f"c{n}", n, Q) for n in range(8, 10)))
    bench.join()
    run(STREAM, **given)
    copied = bench.spark.read.format("delta").load(str(tmp_path / "copy")).collect()
    assert sorted(row["event_id"] for row in copied) == ids(0, 10)


@in_full
def test_a_stream_passes_over_what_was_forgotten(bench: Bench, tmp_path: Path) -> None:
    """As docs/forget.md says: the copy keeps the row, table `forgotten` says which, and new rows come through."""
    copy = tmp_path / "copy"
    given = {"spark": bench.spark, "table": table(bench), "checkpoint": str(tmp_path / "at"), "copy": str(copy)}
    run(STREAM, **given)
    (tmp_path / "ids").write_text(ids(0, 1)[0])
    forget(bench.spark, bench.pipeline, "main", print, ids=str(tmp_path / "ids"), apply=True, wait=0)
    bench.engine = bench.replica("main")
    bench.clicks(click("c5", 5, Q))
    bench.join()
    run(STREAM, **given)
    copied = bench.spark.read.format("delta").load(str(copy)).collect()
    assert sorted(row["event_id"] for row in copied) == ids(0, 6)
    assert bench.hosts("joined") == ["c1", "c2", "c3", "c4", "c5"]
    assert bench.rows("forgotten", "stream", "event_id") == [("foreign", ids(0, 1)[0])]


def test_files_since_a_version(bench: Bench) -> None:
    last = bench.engine.lake.delta.version("joined")
    bench.clicks(*(click(f"c{n}", n, Q) for n in range(5, 8)))
    bench.join()
    assert list(run(VERSION, table=table(bench), last=last)["new"].values()) == [3]


def test_rows_since_a_time(bench: Bench) -> None:
    newest = max(bench.engine.lake.delta.read("joined")["published_at"].to_pylist())
    assert sorted(run(TIME, table=table(bench), newest=newest)["rows"]["event_id"].to_pylist()) == ids(0, 5)
    late = newest + timedelta(hours=2)
    assert run(TIME, table=table(bench), newest=late)["rows"].num_rows == 0
