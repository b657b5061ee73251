"""Both joiners give each event of a batch the same status, the same output row and the same claim."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, cycle
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from clickjoin import batch
from clickjoin.batch_context import Context
from clickjoin.joiner import dealing
from clickjoin.joiner.arrow_join import ArrowJoin, can_join
from clickjoin.joiner.port import Outcome
from clickjoin.joiner.publish import output, stamped
from clickjoin.joiner.side_outputs import _pending
from clickjoin.joiner.spark_join import SparkJoin
from clickjoin.model.batch_plan import TableSplit
from clickjoin.model.ids import MICROS, moment
from clickjoin.retry.due import due_events
from tests.sampled import some
from tests.spark.bench import NOON, Bench, click, event_id, query
from tests.spark.count import agrees
from tests.spark.test_local import Near

SHARDS, SPAN = 4, 7200  # seconds: some buckets of two dates
MIDNIGHT = 43200
seconds = st.integers(MIDNIGHT - SPAN, MIDNIGHT + SPAN)
asked = st.lists(st.tuples(st.integers(0, 5), seconds), max_size=10)
clicked = st.lists(st.tuples(st.integers(0, 7), seconds, st.integers(0, 9)), min_size=1, max_size=12)
bounds = st.dictionaries(st.integers(0, SHARDS - 1), seconds, max_size=SHARDS)
ADAPTERS = ("clickjoin.joiner.adapter:BothRecords", f"{Near.__module__}:Near")
NUMBER = count()
HERE = cycle([0, 20_000])  # by tasks, and by this process


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
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dealing, "_ROWS_HERE", next(HERE))
            one, other = (joiner.join(ctx, work) for joiner in (ArrowJoin(), SparkJoin()))
        assert tallies(one) == tallies(other)
        assert rows(ctx, one) == rows(ctx, other)
        bench.engine.join_once()

    same()


STATE = (
    "event_id", "event_time", "primary_id", "payload", "state", "outcome", "round", "attempt", "first_seen", "due_at",
    "sequence", "batch", "replica",
)  # fmt: skip


@pytest.mark.parametrize("primary_time", some(["embedded", {"lookback": "30m"}], 2))
def test_one_outcome_of_a_retry(make: Any, monkeypatch: pytest.MonkeyPatch, primary_time: Any) -> None:
    """Joined, left out, given up by tries or as absent, claimed by another, expired, and waiting on."""
    bench: Bench = make(
        adapter=ADAPTERS[1], foreign={"primary_time": primary_time},
        retry={"max_attempts": 2, "max_age": "15s", "first_delay": "10s", "backoff": 3},
    )  # fmt: skip
    bench.clock.now = NOON + 1000
    known = [query(f"q{at}", at) for at in (0, 1, -1000)]
    missing = [query(name, at) for name, at in (("never", 2), ("gone", -600))]
    bench.clicks(*(click(f"c{n}", 600 + n, known[n % 2]) for n in range(8)), click("old", 700, missing[0]))
    bench.clicks(click("left out", -10, known[2]))
    bench.clicks(click("lost", -590, missing[1]), click("before", -7000, missing[1]))
    bench.join()
    bench.clock.now += 10
    bench.engine.retry_once()
    bench.queries(known[1])
    bench.engine.copy("other").join_once()
    bench.queries(known[0], known[2])
    bench.clock.now += 50
    bench.clicks(click("young", 701, missing[0]))
    bench.join()
    bench.clock.now += 12
    delta = bench.engine.lake.delta
    due, low = int(bench.clock() * MICROS), int(at(-300).timestamp() * MICROS)
    plan = bench.engine.retry.next_of_table(TableSplit("pending", delta.version("pending"), due, 100, passed=low))
    assert plan
    ctx = replace(bench.context(plan), boundary=dict.fromkeys(range(SHARDS), at(-5000)))
    work = due_events(ctx)
    one, other = (joiner.join(ctx, work) for joiner in (ArrowJoin(), SparkJoin()))
    assert tallies(one) == tallies(other)
    assert set(tallies(one)) == {"joined", "filtered", "unjoinable", "pending", "repeat", "expired"}
    assert (one.absent, other.absent) == (1, 1)
    assert rows(ctx, one) == rows(ctx, other)
    for most in (next(HERE), next(HERE)):
        monkeypatch.setattr(dealing, "_ROWS_HERE", most)
        chosen = ArrowJoin().join(ctx, due_events(ctx, here=True))
        assert (tallies(chosen), rows(ctx, chosen)) == (tallies(one), rows(ctx, one))
    by_tasks = ctx.lake.written("pending", one.files_of("pending"))
    by_spark = _pending(ctx, stamped(ctx, other.rows()))
    both = [sorted(map(str, frame.select(*STATE).collect())) for frame in (by_tasks, by_spark)]
    assert both[0] == both[1]
    bench.run_copy(plan)
    assert agrees(bench)


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
    left = outcome.rows().where("status IN ('pending', 'expired')")
    found = {"left": left.select("status", "event_id", "event_time", "primary_id", "payload", "attempt", "round")}
    claims = ["event_id", "event_time", "bucket", "shard", "outcome"]
    columns = ["event_id", "event_time", "event_date", "bucket", "primary_id", "primary_time", *ctx.adapter.columns]
    if outcome.files:
        found |= {name: ctx.lake.written(name, outcome.files_of(name)) for name in ("registry", "joined")}
    else:
        claimed = outcome.rows().where("status IN ('joined', 'filtered', 'unjoinable')")
        found["registry"] = claimed.withColumn("outcome", F.col("status"))
        found["joined"] = output(ctx, outcome.rows().where("status = 'joined'"))
    found["registry"], found["joined"] = found["registry"].select(*claims), found["joined"].select(*columns)
    assert not found["joined"].where("NOT event_date <=> date(event_time)").count()
    return {name: sorted(map(tuple, frame.collect())) for name, frame in found.items()}
