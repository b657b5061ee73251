"""Both joiners give each event of a batch the same status, the same output row and the same claim."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from clickjoin import batch
from clickjoin.batch_context import Context
from clickjoin.joiner.arrow_join import ArrowJoin, can_join
from clickjoin.joiner.port import Outcome
from clickjoin.joiner.publish import output
from clickjoin.joiner.spark_join import SparkJoin
from clickjoin.model.ids import moment
from tests.sampled import some
from tests.spark.bench import NOON, Bench, click, event_id, query
from tests.spark.test_local import Near

SHARDS, SPAN = 4, 7200  # seconds: some buckets of two dates
MIDNIGHT = 43200
seconds = st.integers(MIDNIGHT - SPAN, MIDNIGHT + SPAN)
asked = st.lists(st.tuples(st.integers(0, 5), seconds), max_size=10)
clicked = st.lists(st.tuples(st.integers(0, 7), seconds, st.integers(0, 9)), min_size=1, max_size=12)
bounds = st.dictionaries(st.integers(0, SHARDS - 1), seconds, max_size=SHARDS)
ADAPTERS = ("clickjoin.joiner.adapter:BothRecords", f"{Near.__module__}:Near")
NUMBER = count()


@pytest.mark.parametrize(
    ("primary_time", "partition"), [("embedded", "bucket"), ({"lookback": "30m"}, "event_date")], ids=["id", "lookback"]
)
@pytest.mark.parametrize("adapter", some(ADAPTERS[::-1], 2))
def test_one_outcome(make: Any, adapter: str, primary_time: Any, partition: str) -> None:
    more = {"registry": {"shards": SHARDS}, "output": {"partition": [partition]}}
    bench: Bench = make(adapter=adapter, foreign={"primary_time": primary_time}, **more)

    bench.clock.now = NOON + MIDNIGHT + SPAN + 60

    @settings(
        max_examples=6, deadline=None, derandomize=True, phases=[Phase.generate], database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(asked, clicked, clicked, bounds, st.none() | seconds)
    def same(queries: Any, before: Any, clicks: Any, boundary: dict[int, int], floor: int | None) -> None:
        name = f"r{next(NUMBER)}"
        known = [query(f"q{name}{host}", at) for host, at in queries]
        missing = query(f"late{name}", MIDNIGHT)
        log(bench, name, known, missing, before)
        bench.engine.join_once()  # some of the next batch's events are claimed by this one
        log(bench, name, [], missing, clicks + before[:2], known)
        ctx, work = planned(bench)
        ctx = replace(
            ctx,
            boundary={shard: at(second) for shard, second in boundary.items()},
            floor=None if floor is None else at(floor),
        )
        assert can_join(ctx)
        one, other = (joiner.join(ctx, work) for joiner in (ArrowJoin(), SparkJoin()))
        assert tallies(one) == tallies(other)
        assert rows(ctx, one) == rows(ctx, other)
        bench.engine.join_once()

    same()


def at(second: int) -> Any:
    """A time so many seconds after noon."""
    return moment(int(event_id("a", second).rpartition(":")[2]))


def log(bench: Bench, name: str, queries: list[Any], missing: Any, clicks: Any, known: Any = ()) -> None:
    """Write queries, and clicks on them, or on one that never comes."""
    bench.queries(*queries)
    there = [*queries, *known, missing]
    bench.clicks(*(click(f"c{name}{host}", second, there[of % len(there)]) for host, second, of in clicks))


def planned(bench: Bench) -> tuple[Context, Any]:
    """The next batch as it stands once it has landed."""
    plan = bench.engine.join.next_join()
    assert plan
    ctx = bench.context(plan)
    work, _ = batch._land(ctx, bench.engine.sources)
    assert work
    return ctx, work


def tallies(outcome: Outcome) -> dict[str, Any]:
    """What is counted by status; sizes and percentiles are estimates."""
    return {
        status: (tally.extent.rows, sorted(tally.extent.buckets), tally.extent.low, tally.extent.high, tally.shards)
        for status, tally in outcome.tallies.items()
    }


def rows(ctx: Context, outcome: Outcome) -> dict[str, list[Any]]:
    """Output rows and claims without their times of writing, and the events that wait or are expired."""
    left = outcome.rows.where("status IN ('pending', 'expired')")
    found = {"left": left.select("status", "event_id", "event_time", "primary_id", "payload", "attempt", "round")}
    claims = ["event_id", "event_time", "bucket", "shard", "outcome"]
    columns = ["event_id", "event_time", "event_date", "bucket", "primary_id", "primary_time", *ctx.adapter.columns]
    if outcome.files:
        found |= {name: ctx.lake.written(name, outcome.files_of(name)) for name in ("registry", "joined")}
    else:
        claimed = outcome.rows.where("status IN ('joined', 'filtered', 'unjoinable')")
        found["registry"] = claimed.withColumn("outcome", F.col("status"))
        found["joined"] = output(ctx, outcome.rows.where("status = 'joined'"))
    found["registry"], found["joined"] = found["registry"].select(*claims), found["joined"].select(*columns)
    assert not found["joined"].where("NOT event_date <=> date(event_time)").count()
    return {name: sorted(map(tuple, frame.collect())) for name, frame in found.items()}
