"""A click that comes again while it waits has several rows in `pending` that are equally new: the first one counts."""

from __future__ import annotations

from typing import Any

from clickjoin.retry.pending import open_rows, waiting
from tests.spark.bench import Bench, click, crash_at, query
from tests.spark.count import agrees

LATE = query("late", 0)
A, B = click("a", 1, LATE), click("b", 2, LATE)


def _doubled(make: Any) -> Bench:
    """One click that came before another one and after it; the query of both has come."""
    bench: Bench = make(batch={"max_events": 1})
    for each in (A, B, A):
        bench.clicks(each)
        bench.join()
        bench.clock.now += 1
    bench.queries(LATE)
    bench.join()
    return bench


def test_a_retry_cut_short_takes_up_the_same_events_again(make: Any) -> None:
    """The first run is chosen by Arrow, the replay by Spark: what is claimed is published."""
    bench = _doubled(make)
    bench.clock.now += 20
    with crash_at(bench.engine.lake, "joined", after=False):
        bench.engine.retry_once()
    bench.engine = bench.replica("main")
    assert bench.retry() == {"events_in": 1, "joined": 1}
    assert bench.retry() == {"events_in": 1, "joined": 1}
    assert bench.places() == {"joined": ["a", "b"]}
    assert agrees(bench)


def test_the_first_row_is_the_state_for_spark_and_for_arrow(make: Any) -> None:
    """However the table's files are ordered."""
    bench = _doubled(make)
    for _ in range(2):
        lake = bench.engine.lake
        assert {row["batch"] for row in open_rows(lake.delta, "batch")} == {1, 2}
        assert {row["batch"] for row in waiting(lake, "main").collect()} == {1, 2}
        bench.spark.sql(f"OPTIMIZE delta.`{bench.engine.lake.delta.path('pending')}`")
