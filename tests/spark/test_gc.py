"""GC on real tables: the boundary first, then batches from before it, then whole partitions."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clickjoin.gc.collector import Collected, Collector
from clickjoin.gc.compaction import maintain
from clickjoin.model import failpoint
from clickjoin.registry.boundary import advance
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench, click, query
from tests.spark.count import agrees

HOUR = 3600.0
REGISTRY = {"retention": "3h", "bucket": "1h", "shards": 2}
SMALL = {"verify": {"window": "1h"}, "registry": REGISTRY, "retry": {"max_age": "60s", "max_attempts": 2}}


def gc(bench: Bench, *, hours: float = 0, dry_run: bool = False, patience: float = 0) -> Collected:
    """Collect, some hours after noon."""
    bench.clock.now = max(bench.clock.now, NOON + hours * HOUR)
    now, engine = datetime.fromtimestamp(bench.clock.now, UTC), bench.engine
    return Collector(
        bench.pipeline, engine.lake, now, engine.finish, print, patience, dry_run, sleep=lambda _: None
    ).collect()  # fmt: skip


def joined(bench: Bench, host: str, hours: float) -> dict[str, Any]:
    """Write a query and its click, so many hours after noon, and move the clock there."""
    asked = query(f"q{host}", hours * HOUR)
    clicked = click(host, hours * HOUR + 1, asked)
    bench.clock.now = max(bench.clock.now, NOON + hours * HOUR + 60)
    bench.queries(asked)
    bench.clicks(clicked)
    return clicked


def crash_at(monkeypatch: pytest.MonkeyPatch, bench: Bench, point: str) -> None:
    def reach(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    monkeypatch.setattr(failpoint, "reach", reach)
    with pytest.raises(KeyboardInterrupt):
        bench.engine.join_once()
    monkeypatch.undo()
    bench.engine = bench.replica("main")


def test_old_claims_go_and_their_repeats_are_expired(make: Callable[..., Bench]) -> None:
    bench = make(**SMALL)
    old, new = joined(bench, "old", 0), joined(bench, "new", 5)
    bench.join()
    done = gc(bench, hours=5.5)
    assert done.boundary == datetime.fromtimestamp(NOON + 2 * HOUR, UTC)
    assert {name: size.rows for name, size in done.dropped.items()} == {"registry": 1, "primary": 1, "foreign": 1}
    assert list(bench.claims()) == ["new"]
    assert bench.hosts("joined") == ["new", "old"]  # the output stays
    bench.clicks(old, new)
    assert bench.join() == {"events_in": 2, "repeats": 1, "expired": 1}
    assert bench.places() == {"joined": ["new", "old"], "expired": ["old"]}
    again = gc(bench, hours=5.5)  # the late repeat's landed row lies below what is kept
    assert {name: size.rows for name, size in again.dropped.items()} == {"registry": 0, "primary": 0, "foreign": 1}


def test_dropping_writes_no_data(make: Callable[..., Bench]) -> None:
    bench = make(**SMALL)
    joined(bench, "old", 0)
    joined(bench, "new", 5)
    bench.join()
    gc(bench, hours=5.5)
    delta = bench.engine.lake.delta
    log = bench.disk / "registry/_delta_log" / f"{delta.version('registry'):020}.json"
    actions = [next(iter(json.loads(line))) for line in log.read_text().splitlines()]
    assert sorted(actions) == ["commitInfo", "remove"]


def test_a_dry_run_says_it_and_changes_nothing(make: Callable[..., Bench]) -> None:
    bench = make(**SMALL)
    joined(bench, "old", 0)
    joined(bench, "new", 5)
    bench.join()
    before = bench.all_tables()
    dry = gc(bench, hours=5.5, dry_run=True)
    assert bench.all_tables() == before
    done = gc(bench, hours=5.5)
    assert (dry.boundary, dry.dropped, dry.rows) == (done.boundary, done.dropped, done.rows)


def test_an_event_that_waits_holds_the_boundary(make: Callable[..., Bench]) -> None:
    bench = make(**{**SMALL, "retry": {"max_age": "30d", "max_attempts": 99}})
    late = query("late", 0)
    bench.clicks(click("waits", 1, late))
    joined(bench, "new", 5)
    bench.join()
    done = gc(bench, hours=5.5)
    assert done.boundary == datetime.fromtimestamp(NOON, UTC)
    assert done.dropped["registry"].rows == 0
    bench.queries(late)
    bench.join()
    assert bench.retry(after=10)["joined"] == 1
    assert gc(bench, hours=5.5).boundary == datetime.fromtimestamp(NOON + 2 * HOUR, UTC)


def test_a_batch_that_has_claimed_is_carried_through(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between claim and publish, its claims below the new boundary: GC publishes before it drops them."""
    bench = make(**SMALL)
    joined(bench, "old", 0)
    crash_at(monkeypatch, bench, "claimed")
    assert (list(bench.claims()), bench.hosts("joined")) == (["old"], [])
    other = bench.replica("west")
    joined(bench, "new", 5)
    assert other.join_once()
    done = gc(bench, hours=5.5)
    assert done.stragglers["finished"] == ("bench/main/join/1",)
    assert list(bench.claims()) == ["new"]
    assert bench.hosts("joined") == ["new", "old"]
    bench.engine = bench.replica("main")
    assert bench.join()["repeats"] == 1  # main takes up what came later, and finds it claimed by west
    assert bench.hosts("joined") == ["new", "old"]


@pytest.mark.parametrize("point", some(["looked-up", "landed", "planned"], 3))
def test_a_batch_that_has_not_claimed_is_fenced(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Killed before its claim: it can never claim below the new boundary, and its events are counted."""
    bench = make(**SMALL)
    joined(bench, "old", 0)
    fresh = joined(bench, "fresh", 5)
    crash_at(monkeypatch, bench, point)
    west = bench.replica("west")
    assert west.join_once()
    done = gc(bench, hours=5.5)
    assert done.stragglers["fenced"] == ("bench/main/join/1",)
    assert list(bench.claims()) == ["fresh"]  # west's; its claim on `old` has been collected
    bench.engine = bench.replica("main")
    bench.join()
    assert bench.hosts("joined") == ["fresh", "old"]
    assert bench.places()["expired"] == ["old"]
    bench.clicks(fresh)
    assert bench.join() == {"events_in": 1, "repeats": 1}


def test_where_nothing_is_to_go_no_batch_is_fenced(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make(**SMALL)
    joined(bench, "old", 0)
    crash_at(monkeypatch, bench, "looked-up")
    west = bench.replica("west")
    joined(bench, "new", 1)
    assert west.join_once()
    before, done = bench.claims(), gc(bench, hours=1.5)
    assert done.boundary
    assert (done.stragglers, done.dropped["registry"].rows, bench.claims()) == ({}, 0, before)
    bench.engine = bench.replica("main")
    assert [bench.join()["repeats"] for _ in range(2)] == [1, 1]  # the batch goes on where it was
    assert bench.hosts("joined") == ["new", "old"]


def test_a_late_copy_with_the_older_boundary_claims_nothing(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zombie read the boundary, then GC ran whole: were it not fenced, it would join what is joined already."""
    bench = make(**SMALL)
    joined(bench, "old", 0)
    joined(bench, "new", 5)
    plan = bench.engine.join.next_join()
    assert plan
    zombie = bench.context(plan)
    assert bench.replica("west").join_once()
    gc(bench, hours=5.5)
    from clickjoin.batch import run_batch

    run_batch(zombie, bench.engine.sources)
    assert bench.hosts("joined") == ["new", "old"]
    assert list(bench.claims()) == ["new"]


def test_what_another_collector_moves_meanwhile_is_not_dropped(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches from before that other boundary have not been handled: their claims' ids are still to be asked for."""
    bench = make(**SMALL)
    for host, hours in (("old", 0), ("mid", 3), ("new", 6)):
        joined(bench, host, hours)
    bench.join()
    delta, later = bench.engine.lake.delta, datetime.fromtimestamp(NOON + 4 * HOUR, UTC)
    monkeypatch.setattr(
        failpoint, "reach", lambda name: name == "stragglers-handled" and advance(delta, 2, later, later)
    )
    gc(bench, hours=5.5)
    assert sorted(bench.claims()) == ["mid", "new"]


def test_no_query_goes_from_under_a_click_that_is_claimed(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make(**SMALL)
    old = query("old")
    bench.queries(old)
    joined(bench, "new", 5)
    bench.join()

    def reach(name: str) -> None:
        if name == "stragglers-handled":  # from here on nobody waits for a batch that begins
            bench.clicks(click("late", 5 * HOUR, old))
            with pytest.raises(KeyboardInterrupt):
                bench.replica("main").join_once()
        if name == "claimed":
            raise KeyboardInterrupt

    monkeypatch.setattr(failpoint, "reach", reach)
    assert gc(bench, hours=5.5).dropped["primary"].rows == 1
    monkeypatch.undo()
    bench.engine = bench.replica("main")
    assert bench.join() == {"events_in": 1, "pending": 1}
    assert bench.places() == {"joined": ["new"], "pending": ["late"]}


@pytest.mark.parametrize("point", some(("stragglers-handled", "boundary-moved", "claims-dropped"), 3))
def test_cut_short_and_begun_again(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    bench = make(**SMALL)
    old = joined(bench, "old", 0)
    joined(bench, "new", 5)
    bench.join()

    def reach(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    monkeypatch.setattr(failpoint, "reach", reach)
    with pytest.raises(KeyboardInterrupt):
        gc(bench, hours=5.5)
    monkeypatch.undo()
    bench.clicks(old)
    assert bench.join()["events_in"] == 1
    assert bench.hosts("joined") == ["new", "old"]
    gc(bench, hours=5.5)
    assert list(bench.claims()) == ["new"]


@in_full
def test_history_of_what_waits_no_longer_goes(make: Callable[..., Bench]) -> None:
    bench = make(**SMALL, retention={"pending": "1h"})
    late, never = query("late", 0), query("never", 0)
    bench.clicks(click("joins", 1, late), click("given-up", 1, never))
    bench.join()
    bench.queries(late)
    bench.join()
    bench.retry(after=70)
    assert bench.places() == {"joined": ["joins"], "unjoinable": ["given-up"]}
    bench.engine.redrive()
    assert bench.places() == {"joined": ["joins"], "unjoinable": [], "pending": ["given-up"]} or bench.places() == {
        "joined": ["joins"],
        "pending": ["given-up"],
    }
    rows = len(bench.rows("pending"))
    done = gc(bench, hours=3)
    assert (done.rows["pending"], len(bench.rows("pending"))) == (2, rows - 2)
    assert bench.places()["pending"] == ["given-up"]
    bench.queries(never)
    bench.join()
    assert bench.retry()["joined"] == 1
    assert bench.places() == {"joined": ["given-up", "joins"]}


@in_full
def test_the_sums_agree_after_records_were_collected(make: Callable[..., Bench]) -> None:
    bench = make(**SMALL)
    for host, hours in (("old", 0), ("new", 9)):
        joined(bench, host, hours)
        bench.join()
    assert gc(bench, hours=9.5).dropped["foreign"].rows == 1
    found = bench.accounts()
    assert (found["agree"], found["collected"], found["accepted"], found["joined"]) == (True, 1, 1, 1)


def test_closed_buckets_are_rewritten_and_no_row_changes(make: Callable[..., Bench]) -> None:
    bench = make(**SMALL, output={"partition": ["bucket"]})
    for n in range(5):
        joined(bench, f"c{n}", 0)
        bench.join()
    before, delta = bench.all_tables(), bench.engine.lake.delta
    now = datetime.fromtimestamp(NOON + 5 * HOUR, UTC)
    many = delta.files("registry").num_rows
    done = maintain(bench.pipeline, bench.engine.lake, now, print)
    assert done.rewritten["joined"] == 5
    assert done.rewritten["primary"] == 5
    assert delta.files("joined").num_rows == 1
    assert delta.files("registry").num_rows < many or many < 4
    assert bench.all_tables() == before
    joined(bench, "c9", 0)
    assert bench.join()["joined"] == 1
    assert agrees(bench)


@in_full
def test_an_open_bucket_is_rewritten_once_it_is_crowded(make: Callable[..., Bench]) -> None:
    bench = make(**SMALL)
    delta, now = bench.engine.lake.delta, datetime.fromtimestamp(NOON + HOUR, UTC)
    held = []
    for n in range(4):
        held.append(joined(bench, f"c{n}", 0))
        bench.join()
    maintain(bench.pipeline, bench.engine.lake, now, print)
    assert delta.files("joined").num_rows == 4
    before = bench.all_tables()
    maintain(bench.pipeline, bench.engine.lake, now, print, crowd=4)
    assert delta.files("joined").num_rows == 1
    assert bench.all_tables() == before
    bench.clicks(held[2])  # its claim lies in a file that was rewritten
    joined(bench, "c9", 0)
    assert bench.join() == {"primary_in": 1, "events_in": 2, "joined": 1, "repeats": 1}
    assert agrees(bench)


@pytest.mark.parametrize("local", some(["4MB", "0B"], 2))
def test_landed_rows_are_rewritten_before_they_are_looked_up(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, local: str
) -> None:
    bench = make(**SMALL | {"batch": {"driver_bytes": local}})
    now, seen = datetime.fromtimestamp(NOON + HOUR, UTC), []

    def reach(name: str) -> None:
        if name == "landed":
            maintain(bench.pipeline, bench.engine.lake, now, print, crowd=2)
            seen.append(bench.engine.lake.delta.files("foreign").num_rows)

    monkeypatch.setattr(failpoint, "reach", reach)
    for n in range(3):
        joined(bench, f"c{n}", 0)
        assert bench.join() == {"primary_in": 1, "events_in": 1, "joined": 1}
    assert seen == [1, 1, 1]
    assert agrees(bench)


@in_full
def test_two_that_rewrite_the_same_files_double_nothing(make: Callable[..., Bench]) -> None:
    """By hand beside the one on schedule: one of them is refused, or finds nothing to do."""
    bench = make(**SMALL, output={"partition": ["bucket"]})
    for n in range(4):
        joined(bench, f"c{n}", 0)
        bench.join()
    before, now = bench.all_tables(), datetime.fromtimestamp(NOON + 5 * HOUR, UTC)
    lakes = [bench.replica(name, bench.spark.newSession()).lake for name in ("east", "west")]
    threads = [threading.Thread(target=maintain, args=(bench.pipeline, lake, now, print)) for lake in lakes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bench.all_tables() == before
    assert bench.engine.lake.delta.files("joined").num_rows == 1


@in_full
def test_a_process_collects_that_has_not_started_spark(make: Callable[..., Bench]) -> None:
    """As `clickjoin gc` does in a shell: nothing may name a column before there is a session."""
    bench = make()
    bench.queries(asked := query("q"))
    bench.clicks(click("a", 10, asked), click("late", 20, query("missing", 5)))
    bench.join()
    command = [Path(sys.executable).with_name("clickjoin"), "gc", "--config", bench.file, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["dry_run"] is False
