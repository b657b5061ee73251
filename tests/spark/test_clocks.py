"""Wrong clocks and vacuums on real tables: who may remove what a batch has written or names, and what comes then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from clickjoin.engine import Engine
from clickjoin.gc.compaction import clean
from clickjoin.jobs import upkeep
from clickjoin.lake import clock
from clickjoin.lake.vacuum import Needed, is_whole, vacuum
from clickjoin.model import failpoint
from clickjoin.model.errors import ClockError, FilesGone
from clickjoin.model.ids import MICROS
from clickjoin.schemas import ALL
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench, click, query
from tests.spark.count import agrees

DAYS = 2 * 86400.0


def asked(bench: Bench, *hosts: str) -> None:
    """A query and its click for each host."""
    for host in hosts:
        record = query(f"q{host}")
        bench.queries(record)
        bench.clicks(click(host, 1, record))


def age(bench: Bench, seconds: float) -> None:
    """All files of the lake are so much older: as time that has passed, or as a host sees them whose clock is ahead."""
    for path in bench.disk.rglob("*"):
        if path.is_file() and path.name != clock.PROBE:
            found = path.stat()
            os.utime(path, (found.st_atime - seconds, found.st_mtime - seconds))


def by_hand(bench: Bench, *names: str) -> list[str]:
    """VACUUM RETAIN 0 HOURS by somebody who looks at nothing else."""
    delta = bench.engine.lake.delta
    wanted = names or tuple(table.name for table in ALL)
    return [path for name in wanted for path in vacuum(delta, name, Needed(time.time() + DAYS))]


def at(monkeypatch: pytest.MonkeyPatch, point: str, what: Callable[[], Any]) -> None:
    """Something happens once when a batch reaches a point."""
    left = [what]
    monkeypatch.setattr(failpoint, "reach", lambda name: left.pop()() if name == point and left else None)


def whole(bench: Bench) -> bool:
    """Whether all files of the newest versions are there."""
    delta = bench.engine.lake.delta
    return all(is_whole(delta, table.name, delta.version(table.name)) for table in ALL)


@pytest.mark.parametrize("local", ["0B", "4MB"])
def test_files_that_go_before_they_are_claimed(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, local: str
) -> None:
    """The batch writes others at once, and nothing is committed that is not there."""
    bench, gone = make(batch={"driver_bytes": local}), []
    asked(bench, "a", "b")
    at(monkeypatch, "looked-up", lambda: gone.extend(by_hand(bench)))
    assert bench.join() == {"primary_in": 2, "events_in": 2, "joined": 2}
    assert any("registry" in path or "shard=" in path for path in gone)
    assert whole(bench)
    assert bench.places() == {"joined": ["a", "b"]}
    assert agrees(bench)


@in_full
def test_files_that_go_after_the_claim(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """Claimed, and the output that lay beside is gone: it is made again from the claims."""
    bench = make()
    asked(bench, "a", "b")
    at(monkeypatch, "claimed", lambda: by_hand(bench))
    assert bench.join()["joined"] == 2
    assert whole(bench)
    assert bench.places() == {"joined": ["a", "b"]}
    assert agrees(bench)


@in_full
def test_a_batch_that_always_loses_its_files_says_so_and_the_next_run_goes_through(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make()
    asked(bench, "a")
    monkeypatch.setattr(failpoint, "reach", lambda name: by_hand(bench) if name == "looked-up" else None)
    with pytest.raises(FilesGone, match=r"registry.*1 of 1 files .* gone.*is run again"):
        bench.engine.join_once()
    monkeypatch.undo()
    bench.engine = bench.replica("main")
    assert bench.join() == {"primary_in": 1, "events_in": 1, "joined": 1}
    assert whole(bench)
    assert agrees(bench)


def test_a_paused_batch_keeps_what_it_has_written(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """It sleeps for two days between writing and claiming, and is collected around meanwhile."""
    bench, found = make(), []
    bench.clock.now = time.time()
    asked(bench, "a", "b")

    def sleep() -> None:
        files = set(bench.disk.rglob("*.parquet"))
        age(bench, DAYS)
        plan = bench.engine.join.unsettled()
        assert plan
        monkeypatch.setattr(
            "clickjoin.gc.compaction.unsettled", lambda *_: [replace(plan, planned=plan.planned - int(DAYS * MICROS))]
        )
        clean(bench.pipeline, bench.replica("gc").lake.delta, print)
        found.append(files - set(bench.disk.rglob("*.parquet")))

    at(monkeypatch, "looked-up", sleep)
    assert bench.join()["joined"] == 2
    assert found == [set()]


@pytest.mark.parametrize("off", some([DAYS, -DAYS], 2))
def test_gc_by_a_clock_that_is_off_removes_no_file_and_says_why(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    bench, real, said = make(), time.time, []
    for host in "abcde":
        asked(bench, host)
        bench.join()
    assert bench.engine.lake.rewrite("joined")
    files = set(bench.disk.rglob("*.parquet"))
    monkeypatch.setattr(clock.time, "time", lambda: real() + off)
    with pytest.raises(
        ClockError, match=rf"(?s){abs(off) // 1000:.0f}\d\d\d s apart, more than 300 s.*no file was removed"
    ):
        upkeep.gc(bench.spark, bench.pipeline, "main", said.append, wait=0)
    assert files <= set(bench.disk.rglob("*.parquet"))
    monkeypatch.undo()
    age(bench, DAYS)
    done = upkeep.gc(bench.spark, bench.pipeline, "main", said.append, wait=0)
    assert done["removed"]["joined"] == 5
    assert whole(bench)


def test_events_of_now_are_not_expired_by_a_collector_that_is_ahead(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One event is of the day after tomorrow, and so is the collector's clock: the lake's decides."""
    real = time.time
    bench = make(registry={"retention": "2h"}, verify={"window": "1h"}, limits={"max_skew": "3d"})
    bench.clock.now = real()
    now, ahead = (real() - NOON + more for more in (0, DAYS))
    record = query("q", now)
    bench.queries(record)
    bench.clicks(click("new", now, record), click("rogue", ahead, record))
    bench.join()
    monkeypatch.setattr(clock.time, "time", lambda: real() + DAYS)
    done = upkeep.gc(bench.spark, bench.pipeline, "main", print, wait=0, dry_run=True)
    assert datetime.fromisoformat(done["boundary"]).timestamp() < real() - 3600


def waiting(make: Callable[..., Bench], **more: Any) -> Bench:
    """Two clicks wait for their queries, and are due."""
    bench = make(**more)
    queries = [query("qa"), query("qb")]
    bench.clicks(click("a", 1, queries[0]), click("b", 1, queries[1]))
    bench.join()
    bench.clock.now += 20
    bench.late = queries  # type: ignore[attr-defined]
    return bench


def die(monkeypatch: pytest.MonkeyPatch, bench: Bench, point: str) -> None:
    """A retry is planned, and its process dies at a point."""

    def reach(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    monkeypatch.setattr(failpoint, "reach", reach)
    with pytest.raises(KeyboardInterrupt):
        bench.engine.retry_once()
    monkeypatch.undo()


def test_a_plan_keeps_the_version_that_it_names(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = waiting(make)
    die(monkeypatch, bench, "planned")
    plan = bench.engine.retry.unsettled()
    assert plan
    assert plan.table
    lake, root = bench.replica("gc").lake, bench.pipeline
    bench.clicks(click("c", 1, query("qc")))
    bench.join()
    assert lake.rewrite("pending") == 2
    age(bench, DAYS)
    clean(root, lake.delta, print)
    assert is_whole(lake.delta, "pending", plan.table.version)
    bench.queries(*bench.late)  # type: ignore[attr-defined]
    bench.engine = bench.replica("main")
    bench.join()
    assert bench.retry()["joined"] == 2
    assert clean(root, lake.delta, print)["pending"] == 2
    assert not is_whole(lake.delta, "pending", plan.table.version)
    assert bench.places() == {"joined": ["a", "b"], "pending": ["c"]}


@pytest.mark.parametrize("point", some(["planned", "looked-up", "claimed", "published", "set-aside"], 4))
def test_a_retry_whose_version_is_gone_is_settled(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Cut short anywhere: what it has claimed is published, what it has not is tried again, nothing is stuck."""
    bench = waiting(make)
    bench.queries(bench.late[0])  # type: ignore[attr-defined]
    bench.join()
    die(monkeypatch, bench, point)
    lake = bench.replica("gc").lake
    bench.clicks(click("c", 1, query("qc")))
    bench.join()
    assert lake.rewrite("pending")
    assert by_hand(bench, "pending")
    bench.engine = bench.replica("main")
    bench.retry()
    bench.queries(bench.late[1])  # type: ignore[attr-defined]
    bench.join()
    bench.retry(after=60)
    while bench.engine.waiting().due:
        bench.retry()
    assert bench.places() == {"joined": ["a", "b"], "pending": ["c"]}
    assert agrees(bench)


@pytest.mark.parametrize("point", some(["registry", "before", "pending"], 3))
@in_full
def test_a_redrive_whose_version_is_gone_is_settled(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    bench = waiting(make, retry={"max_age": "1s", "max_attempts": 1})
    bench.retry()
    assert bench.places() == {"unjoinable": ["a", "b"]}
    lake = bench.engine.lake
    for name in ("delete_matched", "append"):
        monkeypatch.setattr(lake, name, _stopping(getattr(lake, name), point))
    with pytest.raises(KeyboardInterrupt):
        bench.engine.redrive()
    monkeypatch.undo()
    bench.engine = bench.replica("main")
    bench.engine.lake.spark.sql(f"UPDATE delta.`{bench.engine.lake.delta.path('unjoinable')}` SET attempt = attempt")
    assert by_hand(bench, "unjoinable")
    assert bench.engine.redrive() == 2
    assert bench.places() == {"pending": ["a", "b"]}
    bench.queries(*bench.late)  # type: ignore[attr-defined]
    bench.join()
    assert bench.retry(after=5)["joined"] == 2
    assert bench.places() == {"joined": ["a", "b"]}
    assert agrees(bench)


def _stopping(commit: Any, point: str) -> Any:
    def stop(name: str, *more: Any, **named: Any) -> None:
        if point == "before":
            raise KeyboardInterrupt
        commit(name, *more, **named)
        if name == point:
            raise KeyboardInterrupt

    return stop


@in_full
def test_a_retry_that_was_put_off_by_a_clock_that_was_ahead(make: Callable[..., Bench]) -> None:
    bench = waiting(make)
    bench.clock.now += DAYS
    bench.retry()  # two days ahead: due again in two days
    bench.clock.now -= DAYS
    bench.queries(*bench.late)  # type: ignore[attr-defined]
    bench.join()
    assert bench.engine.drain(lambda _: None).all == 0
    assert bench.places() == {"joined": ["a", "b"]}


def test_batches_are_planned_by_the_lakes_clock(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a process two days behind, what is written now would all be quarantined as too new."""
    bench, real = make(), time.time
    seconds = real() - NOON
    record = query("q", seconds)
    bench.queries(record)
    bench.clicks(click("now", seconds, record))
    monkeypatch.setattr(clock.time, "time", lambda: real() - DAYS)
    bench.engine = Engine(bench.spark, bench.pipeline, "main")
    plan = bench.engine.join.next_join()
    assert plan
    assert (
        abs(plan.planned_at - datetime.fromtimestamp(time.clock_gettime(time.CLOCK_REALTIME), UTC)).total_seconds() < 60
    )
    assert bench.join() == {"primary_in": 1, "events_in": 1, "joined": 1}
