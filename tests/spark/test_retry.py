"""What waits for its primary: given up when tried often and for long, sent round again, and joined after all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from clickjoin.config import Batch
from clickjoin.dates.readiness import awaited
from clickjoin.dispatcher.pacing import Passes
from clickjoin.jobs.joining import retry
from clickjoin.jobs.run import drain as drained
from clickjoin.model.batch_plan import BatchPlan, TableSplit
from clickjoin.model.errors import BatchError
from clickjoin.model.ids import MICROS, moment
from clickjoin.registry.boundary import lift_floor
from clickjoin.retry.redrive import redrive
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench, click, query
from tests.spark.count import agrees

LATE, EARLY = query("late", 0), query("early", 0)


@pytest.fixture(scope="module")
def given_up(make: Any) -> tuple[Bench, list[Any]]:
    """Two clicks tried until one is given up: three times at least, and for 45 seconds at least."""
    bench = make(retry={"max_attempts": 3, "max_age": "45s", "first_delay": "10s", "backoff": 2})
    bench.clicks(click("x", 1, LATE, note="kept"))
    seen = [bench.join(), bench.retry(after=10)]  # after 10 s
    bench.clicks(click("y", 2, LATE))
    seen.append(bench.join())
    seen.append(bench.retry(after=20))  # after 30 s: x often enough, not long enough
    seen.append(bench.retry(after=40))  # after 70 s: x is given up, y is tried for the third time after 60 s
    return bench, seen


def test_tried_often_and_for_long(given_up: tuple[Bench, list[Any]]) -> None:
    bench, seen = given_up
    assert seen == [
        {"events_in": 1, "pending": 1},
        {"events_in": 1, "pending": 1},
        {"events_in": 1, "pending": 1},
        {"events_in": 2, "pending": 2},
        {"events_in": 2, "unjoinable": 2},
    ]
    assert bench.places() == {"unjoinable": ["x", "y"]}
    assert bench.claims() == dict.fromkeys("xy", ("main/retry/3", "unjoinable"))
    assert bench.rows("unjoinable", "round", "attempt") == [(0, 3), (0, 4)]
    newest = ("state", "outcome", "attempt", "due_at")
    assert bench.rows("pending", *newest)[:2] == [("resolved", "unjoinable", a, None) for a in (3, 4)]
    assert bench.engine.retry_once() is None


def test_redriven_and_joined(given_up: tuple[Bench, list[Any]]) -> None:
    bench, _ = given_up
    bench.clock.now += 100
    assert bench.engine.redrive() == 2
    assert bench.places() == {"pending": ["x", "y"]}
    assert bench.claims() == {}
    assert bench.engine.redrive() == 0
    assert bench.retry() == {"events_in": 2, "pending": 2}  # tried again as if new: its age starts again
    bench.queries(LATE)
    bench.join()
    assert bench.retry(after=10) == {"events_in": 2, "joined": 2}
    assert bench.places() == {"joined": ["x", "y"]}
    assert bench.rows("pending", "round", "attempt", "state")[-4:] == [(1, 1, "waiting")] * 2 + [(1, 2, "resolved")] * 2
    foreign = bench.rows("joined", "foreign_record")[0][0]
    assert foreign == bench.rows("foreign", "payload")[0][0]
    assert "kept" in foreign
    assert bench.engine.redrive() == 0
    assert agrees(bench)


def test_none_is_given_up_whose_query_may_be_unread(make: Any) -> None:
    """A join that is down lets no click run out of its attempts; nor does traffic that never ends keep them all."""
    bench: Bench = make(retry={"max_attempts": 1, "max_age": "1s", "first_delay": "1s", "max_delay": "1s"})
    bench.clicks(click("x", 1, LATE), click("never", 1, EARLY))
    bench.join()
    bench.queries(LATE)
    assert bench.retry(after=100) == {"events_in": 2, "pending": 2}
    assert bench.replica(
        "main"
    ).join_once()  # by now what was written in these 100 seconds is read, but for the last 30
    bench.queries(query("other", 0))
    bench.engine = bench.replica("main")
    assert bench.retry(after=1) == {"events_in": 2, "joined": 1, "unjoinable": 1}
    assert bench.places() == {"joined": ["x"], "unjoinable": ["never"]}


def test_logs_that_are_loaded_once_have_a_watermark(make: Any) -> None:
    """Read to their end, with nothing to come: a batch of no records says so, and what is absent is given up."""
    bench: Bench = make(retry={"until": "watermark", "max_delay": "10s"}, close={"max_out_of_orderness": "1s"})
    bench.clicks(click("x", 1, LATE), click("y", 5, query("later", 5)))
    bench.queries(query("a", 4))
    assert bench.join() == {"primary_in": 1, "events_in": 2, "pending": 2}
    assert bench.join() == {}  # of no records
    assert bench.engine.join_once() is None
    assert bench.retry(after=10) == {"events_in": 2, "pending": 1, "unjoinable": 1}
    assert bench.places() == {"pending": ["y"], "unjoinable": ["x"]}


def test_one_whose_query_is_absent_is_given_up_by_the_watermark(make: Any) -> None:
    """As soon as the stream of queries has passed its query's time; one that comes after all is sent round again."""
    bench: Bench = make(retry={"until": "watermark", "max_delay": "10s"}, close={"max_out_of_orderness": "1s"})
    later = query("later", 5)
    bench.clicks(click("x", 1, LATE), click("y", 5, later))
    bench.queries(query("a", 3))
    bench.join()
    assert bench.retry(after=10) == {"events_in": 2, "pending": 2}  # nothing is known of the stream yet
    bench.queries(query("b", 4))
    bench.join()
    assert [row["event_id"].partition(":")[0] for row in awaited(bench.pipeline, bench.engine.lake.delta)] == ["y"]
    assert bench.retry(after=10) == {"events_in": 2, "pending": 1, "unjoinable": 1}
    assert bench.places() == {"pending": ["y"], "unjoinable": ["x"]}
    assert bench.rows("metrics", "sequence", "unjoinable", "absent")[-1] == ("retry", 1, 1)
    bench.queries(later, LATE)
    bench.join()
    bench.engine.redrive()
    assert bench.retry(after=10) == {"events_in": 2, "joined": 2}
    assert agrees(bench)


@pytest.fixture(scope="module")
def lonely(make: Any) -> Bench:
    return _lonely(make)


def _lonely(make: Any) -> Bench:
    """Two clicks that were given up at their first retry."""
    bench: Bench = make(retry={"max_attempts": 1, "max_age": "1s", "first_delay": "1s", "max_delay": "1s"})
    bench.clicks(click("x", 1, LATE), click("z", 1, LATE))
    bench.join()
    bench.retry(after=5)
    assert bench.places() == {"unjoinable": ["x", "z"]}
    return bench


@in_full
def test_a_redrive_cut_short_or_repeated(lonely: Bench) -> None:
    """Every copy of a redrive batch, however late, leaves the same behind; and touches no newer claim."""
    engine, delta = lonely.engine, lonely.engine.lake.delta
    plan = engine.redriver.next_of_table(TableSplit("unjoinable", delta.version("unjoinable"), 0, 10))
    assert plan
    append = engine.lake.append
    engine.lake.append = stop  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        redrive(lonely.context(plan))
    engine.lake.append = append  # type: ignore[method-assign]
    assert lonely.claims() == {}
    assert lonely.places() == {"unjoinable": ["x", "z"]}  # neither lost nor free to be joined twice
    for _ in range(2):
        assert redrive(lonely.context(plan)) == 2
        assert lonely.places() == {"pending": ["x", "z"]}
    assert lonely.replica("main").redrive() == 2  # it was never settled: the same batch, once more
    before = len(delta.read("pending"))
    lonely.retry(after=5)
    assert lonely.claims() == dict.fromkeys("xz", ("main/retry/2", "unjoinable"))
    redrive(lonely.context(plan))
    assert lonely.claims() == dict.fromkeys("xz", ("main/retry/2", "unjoinable"))
    assert len(delta.read("pending")) == before + 2
    assert lonely.places() == {"unjoinable": ["x", "z"]}


@in_full
def test_a_redrive_cut_short_goes_on_although_the_floor_has_moved(make: Any) -> None:
    """GC drops the query that made it choose these clicks, after their claims were given back."""
    bench = _lonely(make)
    delta = bench.engine.lake.delta
    bench.queries(LATE)
    bench.join()
    plan = _cut_short(bench, primary=delta.version("primary"))
    tomorrow = moment(int((NOON + 86_400) * MICROS))
    lift_floor(delta, tomorrow, tomorrow)
    assert redrive(bench.context(plan)) == 2
    assert bench.places() == {"pending": ["x", "z"]}


@pytest.mark.parametrize("way", some(["run", "drain", "retry"], 3))
def test_a_redrive_cut_short_is_finished_by_the_next_run(make: Any, way: str) -> None:
    bench = _lonely(make)
    _cut_short(bench)
    engine = bench.replica("main")
    if way == "run":
        engine.run(0, retries=True, done=lambda _: None)
    elif way == "drain":
        engine.drain(lambda _: None)
    else:
        retry(bench.spark, bench.pipeline, "main", lambda _: None, 0)
    assert [row for row in bench.rows("pending", "sequence", "state") if row[0] == "redrive"] == [
        ("redrive", "waiting")
    ] * 2
    assert bench.replica("main").finish_redrive() == 0
    assert agrees(bench)


def _cut_short(bench: Bench, primary: int | None = None) -> BatchPlan:
    """A redrive batch that ends once it has given the claims back; of those alone whose query is in that version."""
    delta = bench.engine.lake.delta
    part = TableSplit("unjoinable", delta.version("unjoinable"), 0, 10, primary=primary)
    plan = bench.engine.redriver.next_of_table(part)
    assert plan
    append = bench.engine.lake.append
    bench.engine.lake.append = stop  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        redrive(bench.context(plan))
    bench.engine.lake.append = append  # type: ignore[method-assign]
    assert bench.claims() == {}
    return plan


def stop(*_: Any) -> None:
    raise KeyboardInterrupt


@in_full
def test_redrive_in_small_batches_and_of_its_own_replica(lonely: Bench) -> None:
    assert lonely.replica("east").redrive() == 0
    engine = lonely.replica("main")
    engine.pipeline = lonely.pipeline.model_copy(update={"batch": Batch(max_events=1)})
    assert engine.redrive() == 2
    assert engine.redriver.journal.planned() == lonely.engine.redriver.journal.planned() == 3
    assert lonely.places() == {"pending": ["x", "z"]}
    assert lonely.rows("pending", "round", "event_id")[-2:] == [(2, click(name, 1, LATE)["event_id"]) for name in "xz"]
    assert agrees(lonely)


def test_a_redrive_without_a_slice(lonely: Bench) -> None:
    with pytest.raises(BatchError, match="has no split of `unjoinable`"):
        redrive(lonely.context(BatchPlan("bench", "main", "redrive", 9, 0)))


def test_due_rows_are_taken_oldest_first(make: Any) -> None:
    bench = make(batch={"max_events": 2}, retry={"max_attempts": 9})
    bench.clicks(click("a", 1, LATE))
    bench.join()
    bench.clock.now += 1
    bench.clicks(click("b", 2, LATE), click("c", 3, LATE))
    while bench.engine.join_once():
        pass
    assert bench.engine.waiting().next_due.timestamp() == bench.clock.now + 9
    assert bench.retry(after=20) == {"events_in": 2, "pending": 2}
    assert [row[:2] for row in bench.rows("pending", "attempt", "event_id")][-2:] == [
        (2, click("a", 1, LATE)["event_id"]),
        (2, click("b", 2, LATE)["event_id"]),
    ]
    waits = bench.engine.waiting()
    assert (waits.all, waits.due) == (3, 1)
    assert waits.next_due + timedelta(seconds=10) == bench.engine.now()


@pytest.mark.parametrize("seconds", [20, 9])
def test_a_drain_ends_with_nothing_due(make: Any, seconds: float) -> None:
    """Batches take `seconds`, so what waits falls due while others are tried; it does not wait for what is not due."""
    bench = make(retry={"first_delay": "10s", "backoff": 2, "max_delay": "1h", "max_age": "30d", "max_attempts": 1000})
    bench.clicks(click("a", 2, query("never")), click("b", 2, query("never")))
    batches: list[Any] = []

    def done(item: Any) -> None:
        batches.append(item.plan.sequence)
        bench.clock.now += seconds

    waits = bench.engine.drain(done)
    assert batches == (["join", "retry", "retry"] if seconds == 20 else ["join"])
    assert (waits.all, waits.due) == (2, 0)
    assert waits.next_due > bench.engine.now()
    assert bench.engine.retry_once() is None


def test_a_drain_counts_events_and_no_tries(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Passes, "MOST", 2)
    bench = make(retry={"first_delay": "1ms", "backoff": 1, "max_delay": "1ms", "max_age": "30d", "max_attempts": 1000})
    bench.queries(LATE)
    lost = [click(name, 2, query("never")) for name in "abc"]
    bench.clicks(click("x", 1, LATE), *lost, click("x", 1, LATE), lost[0])
    result = drained(bench.spark, bench.pipeline, "main", lambda _: None, check=True)
    assert result["ok"]
    assert (result["events_in"], result["joined"], result["pending"], result["waiting"]) == (4, 1, 3, 3)
    assert result["due"] == 3  # they fall due faster than they are tried: it says so
    assert result["batches"] == 1 + Passes.MOST
    result = drained(bench.spark, bench.pipeline, "main", lambda _: None, check=False)
    assert (result["events_in"], result["pending"], result["joined"]) == (3, 3, 0)


def test_a_drain_ends_although_retries_fall_due_faster_than_they_are_tried(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its clock goes on by 20 s with each batch, and an event is due again after one."""
    monkeypatch.setattr(Passes, "MOST", 3)
    bench = make(retry={"first_delay": "1s", "backoff": 1, "max_delay": "1s", "max_age": "30d", "max_attempts": 1000})
    bench.clicks(click("a", 2, query("never")))
    batches: list[Any] = []

    def done(item: Any) -> None:
        batches.append(item.plan.sequence)
        bench.clock.now += 20

    waits = bench.engine.drain(done)
    assert (waits.all, waits.due, batches) == (1, 1, ["join", *["retry"] * Passes.MOST])
