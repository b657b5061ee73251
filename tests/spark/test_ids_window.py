"""How long an id that alone names its event is remembered: the window, what comes after it, and fills below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from clickjoin.config.sections import Registry
from clickjoin.dates.late_events import join_expired
from clickjoin.gc.collector import Collector
from clickjoin.model.errors import ConfigError
from clickjoin.model.span import Span
from clickjoin.registry.shards import require_same
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench
from tests.spark.hand import found, stopped, verify
from tests.spark.test_stream import event
from tests.spark.test_stream_ids import BEGUN, DAY, assert_exactly_once, later, new, published, times_of

Make = Callable[..., Bench]


def collect(bench: Bench) -> Any:
    engine = bench.replica("main")
    now = datetime.fromtimestamp(bench.clock.now, UTC)
    done = Collector(bench.pipeline, engine.lake, now, engine.finish, print, 0, False, sleep=lambda _: None).collect()
    bench.engine = bench.replica("main")
    return done


def test_claims_outlive_the_boundary(make: Make) -> None:
    """By as much as an event at it may repeat an older one; beyond that an id is another event, published again."""
    fields = {"registry": {"retention": "3d", "bucket": "1d"}, "verify": {"window": "1d"}}
    bench = new(make, event(1), event(2), retention={"foreign": "30d"}, **fields)
    bench.join()
    for day, repeats, claims in ((2, 1, 3), (5, 1, 4), (7, 0, 4)):
        later(bench, day * DAY + NOON + 60 - bench.clock.now)
        bench.clicks(event(10 + day, day * DAY))
        bench.join()
        collect(bench)
        bench.clicks(event(1, day * DAY))
        assert bench.join() == {"events_in": 1} | ({"repeats": 1} if repeats else {"joined": 1})
        assert bench.engine.lake.delta.rows("registry") == claims
    bench.clicks(event(2, 1), event(12, 7 * DAY))
    assert bench.join() == {"events_in": 2, "repeats": 1, "expired": 1}
    assert published(bench) == {event(1)["messageId"]: 2, **{event(n)["messageId"]: 1 for n in (2, 12, 15, 17)}}
    assert times_of(bench, 1) == {1: 7 * DAY}
    bench.clock.now += 60
    assert found(verify(bench)) == {} == found(verify(bench, since=BEGUN))
    assert bench.accounts()["agree"]


@in_full
def test_claims_go_by_number(make: Make) -> None:
    """Of more than max_rows the oldest buckets go first, and the verification's window stays."""
    registry = {"retention": "300d", "repeats": "1d", "bucket": "1d", "max_rows": 45}
    bench = new(make, event(0), registry=registry, verify={"window": "1d"})
    for day in range(6):
        bench.clicks(*(event(number, day * DAY) for number in range(10 * day + (not day), 10 * day + 10)))
        bench.join()
        later(bench, DAY)
    collect(bench)
    assert bench.engine.lake.delta.rows("registry") == 40
    bench.clicks(event(5, 5 * DAY), event(25, 5 * DAY))
    assert bench.join() == {"events_in": 2, "joined": 1, "repeats": 1}


def after_a_week(make: Make, **fields: Any) -> Bench:
    """Events 1 and 2 of the first day, and one each of seven days more, the last of them published.

    The boundary stands at the fourth day, claims reach back to the first.
    """
    aged = {"registry": {"retention": "3d", "bucket": "1d"}, "verify": {"window": "1d"}}
    return new(make, event(1), event(2), retention={"foreign": "30d"}, **aged, **fields)


def a_week(bench: Bench) -> None:
    for day in range(1, 8):
        later(bench, DAY)
        bench.clicks(event(2 + day, day * DAY))
        bench.join()
    collect(bench)


def fill(bench: Bench, days: int = 1) -> dict[str, int]:
    span = Span(BEGUN, BEGUN + timedelta(days=days))
    return join_expired(bench.replica("main"), span, int(bench.clock.now * 1e6), 0.0)


def test_a_fill_publishes_no_id_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica that had landed ids, and was down until they expired: the output has them already."""
    bench = after_a_week(make)
    bench.join()
    bench.clock.now += 6 * 3600
    stopped(monkeypatch, "landed", bench.replica("west").join_once)
    a_week(bench)
    bench.engine = bench.replica("west")
    assert bench.join()["expired"] == 2
    assert fill(bench) == {"late": 0, "late_repeats": 2}
    bench.engine.drain(lambda _: None)
    assert_exactly_once(bench)
    bench.clock.now += 60
    assert found(verify(bench, since=BEGUN)) == {}


@pytest.mark.parametrize("before", some([True, False], 2))
def test_a_replica_that_comes_after_the_window(make: Make, before: bool) -> None:
    """Begun then, or back from being down: what was sent once is published once, as its age is its own."""
    bench = after_a_week(make)
    bench.join()
    if before:
        bench.replica("west").drain(lambda _: None)
    bench.clicks(*(event(number) for number in range(20, 30)))
    bench.join()
    a_week(bench)
    bench.replica("west").drain(lambda _: None)
    assert_exactly_once(bench)
    assert fill(bench)["late"] == 0
    assert_exactly_once(bench)
    bench.clock.now += 60
    assert found(verify(bench, since=BEGUN)) == {}
    assert bench.accounts()["agree"]


def test_what_a_fill_publishes_is_claimed_where_an_event_can_repeat_it(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the boundary, and no further from it than two records of one id may lie apart; also where it is killed."""
    bench = after_a_week(make)
    bench.join()
    a_week(bench)
    bench.clicks(event(50, 3 * DAY), event(51, 3 * DAY), event(52, 1))
    assert bench.join() == {"events_in": 3, "expired": 3}
    stopped(monkeypatch, "fill-claimed", lambda: fill(bench, 8))
    bench.clock.now += 60
    assert found(verify(bench, since=BEGUN)) == {}
    bench.clicks(event(51, 5 * DAY))
    assert bench.join() == {"events_in": 1, "repeats": 1}  # it is the fill's, which goes on
    assert fill(bench, 8) == {"late": 3, "late_repeats": 0}
    claims = Counter(row[0] for row in bench.rows("registry", "event_id"))
    assert [claims[event(n)["messageId"]] for n in (50, 51, 52)] == [1, 1, 0]
    bench.clicks(event(50, 5 * DAY))
    assert bench.join() == {"events_in": 1, "repeats": 1}
    assert_exactly_once(bench)
    bench.clock.now += 60
    assert found(verify(bench, since=BEGUN)) == {}
    assert bench.accounts()["agree"]
    DeltaTable(str(bench.disk / "deduplicated")).delete(f"event_id = '{event(50)['messageId']}'")
    later(bench, 60)
    assert found(verify(bench, since=BEGUN)) == {
        "claim_without_output": 1
    }  # a row of the fill is missed like any other


def test_a_fill_meets_a_live_claim_of_the_same_id(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch claims, at a later time, what a fill has read as expired: one of the two publishes it."""
    bench = after_a_week(make)
    bench.join()
    a_week(bench)
    bench.clicks(event(50, 3 * DAY))
    assert bench.join() == {"events_in": 1, "expired": 1}
    made = type(bench.engine.lake).output_of

    def beside(lake: Any, ctx: Any, rows: Any) -> Any:
        monkeypatch.undo()
        bench.clicks(event(50, 5 * DAY))
        assert bench.join() == {"events_in": 1, "joined": 1}
        return made(lake, ctx, rows)

    monkeypatch.setattr(type(bench.engine.lake), "output_of", beside)
    assert fill(bench, 8) == {"late": 0, "late_repeats": 1}
    assert_exactly_once(bench)
    bench.clock.now += 60
    assert found(verify(bench, since=BEGUN)) == {}


@in_full
def test_a_row_too_many_is_found_on_the_other_side_of_a_range(make: Make) -> None:
    """Two rows of one id nearer than its repeats are one event's, also where only one lies in the range."""
    bench = after_a_week(make)
    bench.join()
    a_week(bench)
    bench.clicks(event(1, 7 * DAY))  # far enough from its first
    assert bench.join() == {"events_in": 1, "joined": 1}
    place, name = str(bench.disk / "deduplicated"), event(7)["messageId"]  # of the sixth day
    rows = DeltaTable(place).to_pyarrow_table()
    row = rows.filter(pc.equal(rows["event_id"], event(9)["messageId"]))
    column = row.schema.get_field_index("event_id")
    write_deltalake(place, row.set_column(column, row.schema.field(column), pa.array([name])), mode="append")
    bench.clock.now += 60
    last = BEGUN + timedelta(days=7)
    assert found(verify(bench, since=last))["doubled"] == 1
    assert found(verify(bench, since=BEGUN))["doubled"] == 1
    assert bench.accounts()["doubled"] == 1
    verify(bench, since=BEGUN, repair=True, remove_doubles=True)
    assert [row[0] for row in bench.rows("removed_duplicates", "event_id")] == [name]
    assert published(bench)[event(1)["messageId"]] == 2


def test_what_a_lake_was_begun_with_says_how_far_repeats_lie_apart(make: Make) -> None:
    bench = new(make, event(1), registry={"retention": "3d"})
    bench.join()
    for registry, fits in (
        ({"retention": "5d", "repeats": "3d"}, True), ({"retention": "5d"}, False), ({"repeats": "4d"}, False),
        ({"identity": "id_and_time"}, False),
    ):  # fmt: skip
        whole = {"identity": "id", "shards": 3, "retention": "3d"} | registry
        changed = bench.pipeline.model_copy(update={"registry": Registry(**whole)})
        if fits:
            require_same(bench.engine.lake.delta, changed)
            continue
        with pytest.raises(ConfigError, match=r"foreign\.event_id is messageId.* begun with messageId alone, repeats"):
            require_same(bench.engine.lake.delta, changed)
