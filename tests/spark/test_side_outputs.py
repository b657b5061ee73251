"""What did not join has one place, wherever a batch is cut short and however far the boundary moves on meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clickjoin.batch import run_batch
from clickjoin.event_store.landing import land
from clickjoin.registry.boundary import advance
from tests.sampled import crossed, in_full, some
from tests.spark.bench import NOON, Bench, click, crash_at, query

Q = query("q")
OLD, OLDER = (click(name, at, query(f"of-{name}", at - 1)) for name, at in (("old", -3000), ("older", -9000)))

BOTH = ("0B", "20MB")  # by Spark's commits, and by this process's
PLACES = [(table, after) for table in ("pending", "expired") for after in (False, True)]


def boundary(bench: Bench, seconds: float) -> None:
    """Move the boundary of all shards to so many seconds after noon."""
    advance(bench.engine.lake.delta, 4, datetime.fromtimestamp(NOON + seconds, UTC), datetime.fromtimestamp(NOON, UTC))


@pytest.fixture
def bench(request: pytest.FixtureRequest, make: Callable[..., Bench]) -> Bench:
    """A click that joins, one that waits, and one that is expired; by Spark's commits, and by this process's."""
    bench = make(batch={"driver_bytes": request.param})
    boundary(bench, -7200)
    bench.queries(Q)
    bench.clicks(click("ok", 1, Q), OLD, OLDER)
    return bench


@in_full
@pytest.mark.parametrize(("bench", "place"), crossed(BOTH, PLACES), indirect=["bench"])
def test_the_boundary_moves_on_while_a_batch_lies_still(bench: Bench, place: tuple[str, bool]) -> None:
    """What waits by its commit goes on waiting; what does not is expired, by whichever boundary: it is nowhere else."""
    table, after = place
    with crash_at(bench.engine.lake, table, after=after):
        bench.engine.join_once()
    waits = (table, after) != ("pending", False)
    boundary(bench, -1800)
    settled = bench.join()
    expired = ["older"] if waits else ["old", "older"]
    assert bench.places() == {"joined": ["ok"], "expired": expired} | ({"pending": ["old"]} if waits else {})
    assert settled == {"primary_in": 1, "events_in": 3, "joined": 1, "expired": len(expired)} | (
        {"pending": 1} if waits else {}
    )


def test_only_expired_ones_are_left(make: Callable[..., Bench]) -> None:
    """That none waits is fixed by a commit as well."""
    bench = make()
    boundary(bench, -7200)
    bench.queries(Q)
    bench.clicks(click("ok", 1, Q), OLDER)
    plan = bench.engine.join.next_join()
    assert plan
    with crash_at(bench.engine.lake, "expired", after=False):
        bench.engine.join_once()
    bench.run_copy(plan)
    assert bench.places() == {"joined": ["ok"], "expired": ["older"]}


@pytest.mark.parametrize("table", some(["pending", "expired"], 2))
def test_a_retry_is_cut_short(make: Callable[..., Bench], table: str) -> None:
    """A try that fails after the boundary has passed its event; the next run finds what the first has written."""
    bench = make()
    boundary(bench, -7200)
    bench.queries(Q)
    bench.clicks(click("ok", 1, Q), OLD, click("late", -5000, query("of-late", -5001)))
    bench.join()
    boundary(bench, -4000)
    bench.clock.now += 10
    with crash_at(bench.engine.lake, table, after=True):
        bench.engine.retry_once()
    boundary(bench, -1800)
    bench.retry()
    assert bench.places() == {"joined": ["ok"], "expired": ["late"], "pending": ["old"]}


@pytest.mark.parametrize(("bench", "first"), crossed(BOTH, ["older", "newer"]), indirect=["bench"])
def test_two_copies_saw_other_boundaries(bench: Bench, first: str) -> None:
    """The first dies once it has fixed which events wait; the other finishes its work, whatever it makes of them."""
    plan = bench.engine.join.next_join()
    assert plan
    before = bench.context(plan, bench.replica("main"))
    boundary(bench, -1800)
    after = bench.context(plan, bench.replica("main"))
    dies, lives = (before, after) if first == "older" else (after, before)
    if first == "older":
        with crash_at(dies.lake, "pending", after=True):
            run_batch(dies, bench.engine.sources)
    else:
        with crash_at(dies.lake, "expired", after=False):
            run_batch(dies, bench.engine.sources)
    run_batch(lives, bench.engine.sources)
    expected = {"expired": ["older"], "pending": ["old"]} if first == "older" else {"expired": ["old", "older"]}
    assert bench.places() == {"joined": ["ok"]} | expected


@pytest.mark.parametrize("local", some(BOTH, 2))
def test_two_copies_land_and_a_log_is_gone_for_one(make: Callable[..., Bench], local: str) -> None:
    """Whose commit came second works on with what the first has landed, not with what it has read itself."""
    bench = make(batch={"driver_bytes": local})
    bench.queries(Q)
    bench.clicks(click("a", 1, Q))
    (log,) = (path for path in Path(bench.folder, "foreign").iterdir())
    bench.clicks(click("b", 2, Q))
    plan = bench.engine.join.next_join()
    assert plan
    other = bench.replica("main")
    source, real = other.sources["foreign"], other.sources["foreign"].lost

    def lost(splits: Any) -> Any:
        land(bench.context(plan, bench.engine), bench.engine.sources)
        log.unlink()
        source.lost = real  # type: ignore[method-assign]
        return real(splits)

    source.lost = lost  # type: ignore[method-assign]
    ctx = bench.context(plan, other)
    run_batch(ctx, other.sources)
    assert bench.places() == {"joined": ["a", "b"]}
