"""Dates: closed when complete, filled, rebuilt, joined late; and what stands in the way is said."""

from __future__ import annotations

import json
import os
import re
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from clickjoin.config.sections import Close
from clickjoin.dates import late_events, ledger
from clickjoin.dates.backfill import RawLogs, land, outline
from clickjoin.dates.closing import Order, close
from clickjoin.dates.late_events import join_expired, try_again
from clickjoin.dates.ledger import changed
from clickjoin.dates.readiness import by_hand, held_by, low_watermark, waiting
from clickjoin.dates.rebuild import rebuild
from clickjoin.jobs import dates
from clickjoin.model.errors import ConfigError, DateBusy, DateError, LakeError
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.span import Day
from clickjoin.registry.boundary import advance
from clickjoin.report.status import backlog
from clickjoin.verification.verify import Verifier, Wanted
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench, click, query
from tests.spark.count import agrees
from tests.spark.hand import Hand

TODAY = Day(date(2026, 3, 1))
NEXT_DAY = moment(int((NOON + 86400) * MICROS))
AFTER = time.time()
LEFT_OUT = ("primary.*", "foreign.*", "registry.*")  # of the checks of a date, as each takes Spark a while
Q, LATE, LOST = query("q"), query("late", 1), query("lost", 2)


def silent(_: str) -> None:
    pass


def order(engine: Any, day: Day = TODAY, **more: Any) -> dict[str, Any]:
    return close(engine, day, Order(**more), silent)


@pytest.fixture
def bench(make: Any) -> Bench:
    """a joined; b waits for a query that comes late; c for one that is never seen."""
    made: Bench = make(close={"idle_timeout": "15m"}, quality={"disable": list(LEFT_OUT)})
    made.queries(Q)
    made.clicks(click("a", 2, Q), click("b", 3, LATE), click("c", 4, LOST))
    made.rest(3600)
    made.join()
    return made


def test_a_day_from_open_to_closed_and_changed_late(bench: Bench) -> None:
    engine, delta = bench.engine, bench.engine.lake.delta
    first = order(engine)
    assert (first["state"], first["ok"], first["changed"], first["revision"]) == ("open", False, False, 0)
    assert "2 of its events wait" in first["detail"]
    assert "newest event" in first["detail"]
    bench.queries(LATE)
    bench.rest(3600)
    bench.join()
    bench.clock.now = AFTER
    second = order(engine, run="r1")  # b joins, c is given up: it was tried often enough
    assert (second["state"], second["joined"], second["unjoinable"], second["pending"]) == ("closed", 2, 1, 0)
    assert (second["revision"], second["changed"]) == (1, True)
    before = bench.all_tables()
    retry_date = order(engine, run="another")
    assert (retry_date["state"], retry_date["revision"], retry_date["changed"]) == ("closed", 1, False)
    same = {name for name, rows in bench.all_tables().items() if rows == before[name]}
    assert {"joined", "registry", "pending", "unjoinable", "foreign", "primary"} <= same
    assert changed(bench.pipeline, delta, NEXT_DAY) == []
    bench.queries(LOST)
    bench.clicks(click("d", 5, Q))
    bench.rest(3600)
    bench.join()
    assert changed(bench.pipeline, delta, NEXT_DAY) == [str(TODAY)]
    last = order(engine)  # c was given up, and its query has come
    assert (last["joined"], last["unjoinable"], last["revision"], last["changed"]) == (4, 0, 2, True)
    assert agrees(bench)


def test_a_closed_date_with_as_many_rows_that_are_others(bench: Bench) -> None:
    """A row went and another came between two looks: their number is that with which it was closed."""
    bench.clock.now = AFTER
    assert order(bench.engine, forced="for a test")["state"] == "closed"
    assert changed(bench.pipeline, bench.engine.lake.delta, NEXT_DAY) == []
    hand = Hand(bench)
    row = hand.rows("joined", "a")[0]
    hand.delete("joined", "a")
    hand.add("joined", row, event_id=row["event_id"].replace("a:", "x:"))
    assert changed(bench.pipeline, bench.replica("main").lake.delta, NEXT_DAY) == [str(TODAY)]


def test_a_date_with_events_that_never_find_their_primary(bench: Bench) -> None:
    """It says which, and until when; it closes with a share of them, or for a reason that it keeps."""
    delta, names = bench.engine.lake.delta, [click("b", 3, LATE)["event_id"], click("c", 4, LOST)["event_id"]]
    said = held_by(bench.pipeline, delta, TODAY, waiting(delta))
    assert said == (
        f"2 of its events wait for their primary event ({names[0]}, {names[1]}), until the last is given up at about "
        "2026-03-01 12:02 UTC"
    )
    for share, end in ((0.0, "0.00%"), (0.6, "60.00%"), (0.7, ""), ("allow", "")):
        may = bench.pipeline.model_copy(update={"close": Close(pending=share)})
        whole = f"{said}; 2 of 3 (66.67%) have none, close.pending allows {end}" if end else ""
        assert held_by(may, delta, TODAY, waiting(delta)) == whole
    assert not held_by(bench.pipeline, delta, Day(date(2026, 3, 2)), waiting(delta))
    first = order(bench.engine)
    assert first["state"] == "open"
    assert said in first["detail"]
    filled = order(bench.engine, action="fill")  # all is done that can be, so that no run fails for it
    assert (filled["state"], filled["ok"], filled["changed"]) == ("open", True, False)
    closed = order(bench.engine, forced=by_hand("the sender lost them"))
    assert (closed["state"], closed["pending"]) == ("closed", 2)
    assert closed["detail"].startswith("closed by hand (the sender lost them): ")
    assert said in closed["detail"]


def test_a_rebuild_changes_rows_and_not_ids(bench: Bench) -> None:
    ids, at = bench.rows("joined", "event_id", "token"), bench.engine.lake.delta.version("joined")
    file = bench.file.read_text() + "adapter: tests.spark.adapters_for_dates:Louder\n"
    bench.file.write_text(file)
    bench.reload()
    seen = outline(bench.engine, TODAY, Order("rebuild"))
    assert (seen["rows"], seen["rebuilt"], seen["missing"], seen["pending"]) == (1, 1, {}, 2)
    assert bench.engine.lake.delta.version("joined") == at + 2  # a column came, and its statistics; no row changed
    done = order(bench.engine, action="rebuild")
    assert done["done"]["rebuilt"] == 1
    assert bench.rows("joined", "event_id", "token") == ids
    assert bench.rows("joined", "louder", "foreign_record") == [("A:1", None)]
    checks = {row[0] for row in bench.rows("quality", "check")}
    assert "null_rate.louder" in checks
    assert not checks & {"null_rate.foreign_record", "null_rate.primary_record"}  # today's adapter does not make them
    old = DeltaTable(bench.engine.lake.delta.path("joined"), version=at).to_pyarrow_table()
    assert old["foreign_record"].null_count == 0
    assert "louder" not in old.column_names


@pytest.mark.parametrize(
    ("adapter", "gone", "message"),
    [
        ("tests.spark.adapters_for_dates:Nobody", (), "1 that today's adapter leaves out"),
        ("tests.spark.adapters_for_dates:Falls", (), "half-way"),
        ("clickjoin.joiner.adapter:BothRecords", ("foreign",), "1 whose own record was collected"),
        ("clickjoin.joiner.adapter:BothRecords", ("primary",), "1 whose primary event was collected"),
    ],
)
def test_a_rebuild_that_cannot_keep_the_ids_changes_nothing(
    bench: Bench, adapter: str, gone: tuple[str, ...], message: str
) -> None:
    for name in gone:
        bench.engine.lake.delta.open(name).delete()
    bench.file.write_text(bench.file.read_text() + f"adapter: {adapter}\n")
    bench.reload()
    before = bench.all_tables()
    with pytest.raises(Exception, match=message) as error:
        rebuild(bench.engine, TODAY.span, 1)
    assert isinstance(error.value, LakeError) or "Adapter" in type(error.value).__name__
    assert bench.all_tables() == before


def test_below_the_boundary_the_output_says_what_is_joined(bench: Bench) -> None:
    """Claims are gone: a's record comes again, with e and f; e's query is there. Two runs, and a copy that was late."""
    delta, noon = bench.engine.lake.delta, moment(int(NOON * MICROS))
    advance(delta, 4, noon + timedelta(hours=1), noon + timedelta(days=9))
    delta.open("registry").delete()
    bench.clicks(click("a", 2, Q), click("e", 6, Q), click("f", 7, query("never", 3)))
    bench.join()
    assert bench.hosts("expired") == ["a", "e", "f"]
    assert outline(bench.engine, TODAY, Order())["expired"] == 2
    assert join_expired(bench.engine, TODAY.span, 7) == {"late": 1, "late_repeats": 1}
    assert (bench.hosts("joined"), bench.hosts("expired")) == (["a", "e"], ["f"])
    before = bench.all_tables()
    assert join_expired(bench.replica("west"), TODAY.span, 7) == {"late": 0, "late_repeats": 0}
    assert bench.all_tables() == before


@in_full
def test_two_dates_at_a_time_in_one_process(bench: Bench) -> None:
    days, action = {"since": "2026-03-01", "until": "2026-03-02"}, {"mode": "fill", "jobs": 2}
    done = dates.backfill(bench.spark, bench.pipeline, "main", silent, **days, **action)  # type: ignore[arg-type]
    assert done["errors"] == {}
    assert [str(row["date"]) for row in done["dates"]] == ["2026-03-01", "2026-03-02"]
    assert bench.hosts("joined") == ["a"]
    assert agrees(bench)


def test_raw_logs_of_the_past_are_read_and_only_these(bench: Bench, tmp_path: Path) -> None:
    for stream, record in (("q", query("old", -50)), ("c", click("o", -40, query("old", -50)))):
        (tmp_path / f"{stream}.jsonl").write_text(json.dumps(record) + "\n")
    logs, batches = RawLogs(str(tmp_path / "q.jsonl"), str(tmp_path / "c.jsonl")), []
    with pytest.raises(ConfigError, match="raw logs are taken only below"):
        land(bench.engine, logs, batches.append)
    assert bench.engine.lake.delta.rows("quarantine") == 0
    with bench.file.open("a") as file:
        file.write(f"backfill: {{roots: [{tmp_path}]}}\n")
    bench.reload()
    assert land(bench.engine, logs, batches.append) == 2
    assert (bench.hosts("joined"), len(batches)) == (["a", "o"], 1)
    assert land(bench.engine, logs, batches.append) == 0
    assert backlog(bench.pipeline, bench.engine.lake.delta, logs.replica)["backlog_bytes"] == 0
    assert bench.engine.join_once() is None  # its own logs are what it reads
    with pytest.raises(ConfigError, match="nowhere"):
        land(bench.engine, RawLogs(foreign=str(tmp_path / "nowhere/*")), batches.append)
    assert verified(bench)


def verified(bench: Bench) -> bool:
    return Verifier(bench.engine, silent).verify(Wanted(TODAY.low, TODAY.high)).ok


@pytest.mark.parametrize("began", some([False, True], 2))
def test_every_replicas_events_are_tried(bench: Bench, monkeypatch: pytest.MonkeyPatch, began: bool) -> None:
    bench.queries(LATE, LOST)
    bench.join()
    west = bench.replica("west")
    if began:  # main has begun since somebody looked which replicas there are
        monkeypatch.setattr(late_events, "replicas", lambda _: ["west"])
    assert try_again(west, TODAY.span)["joined"] == 2
    assert bench.hosts("joined") == ["a", "b", "c"]
    assert try_again(bench.engine, Day(date(2026, 3, 2)).span)["tried"] == 0


def test_a_date_is_held_by_one(bench: Bench) -> None:
    now, tables = [1000.0], bench.engine.lake.delta

    def held(day: Day) -> Any:
        return ledger.held(tables, day, 30, lambda: now[0])

    with held(TODAY):
        with pytest.raises(DateBusy, match="free 30 s after a run that was killed"), held(TODAY):
            pass
        with held(Day(date(2026, 3, 2))):
            pass
    ledger._take(tables, TODAY, 30, lambda: now[0])  # and is killed
    now[0] += 31
    slow = held(TODAY)
    with slow:
        now[0] += 31  # this one is paused for longer than its hold lasts
        quick = held(TODAY)
        quick.__enter__()
    with pytest.raises(DateBusy), held(TODAY):  # the slow one has ended its own hold, and no other
        pass
    quick.__exit__(None, None, None)
    assert tables.read("dates", [("state", "=", "held")]).num_rows == 0  # nor does one of the killed run stay


def test_a_line_that_is_not_finished_holds_the_date_of_those_before_it(make: Any) -> None:
    """From its first byte on, and not only once nobody has gone on with it for a minute."""
    bench: Bench = make(close={"max_out_of_orderness": "1m", "idle_timeout": "15m"})
    delta = bench.engine.lake.delta
    bench.queries(Q, query("r", 80_000))
    bench.clicks(click("a", 70_000, Q))
    older = bench.folder / "foreign" / "older.jsonl"
    older.write_text(json.dumps(click("b", 30, Q)) + "\n" + json.dumps(click("c", 40, Q))[:-9])
    bench.clock.now = NOON + 90_000
    bench.join()
    mark = low_watermark(bench.pipeline, delta, NOON + 90_000)
    assert (mark.time, str(older) in mark.why) == (moment(int((NOON - 30) * MICROS)), True)
    older.write_text('{"event_id"')
    assert low_watermark(bench.pipeline, delta, NOON + 90_000).time is None
    older.unlink()
    mark = low_watermark(bench.pipeline, delta, NOON + 90_000)
    assert mark.time == moment(int((NOON + 70_000 - 60) * MICROS))


def test_a_date_that_has_not_begun(bench: Bench) -> None:
    with pytest.raises(DateError, match="lies in the future"):
        order(bench.engine, Day(date(2026, 3, 3)))


def test_the_watermark(make: Any) -> None:
    bench: Bench = make(close={"max_out_of_orderness": "1m", "idle_timeout": "15m"})
    delta, now = bench.engine.lake.delta, NOON + 100
    assert low_watermark(bench.pipeline, delta, now).why == "no batch has ever been planned"
    bench.queries(Q)
    bench.clicks(click("a", 30, Q))
    bench.join()
    mark = low_watermark(bench.pipeline, delta, now)
    assert mark.time == moment(int((NOON - 60) * MICROS)), mark  # the queries' newest is of noon
    rests = r"UTC; at rest once nothing came for 900 s \(close\.idle_timeout\), at \d\d:\d\d UTC$"
    assert re.search(rests, mark.why)
    bench.queries(query("r", 90))
    bench.clicks("{broken", click("b", 70, Q), click("c", 40, Q))
    mark = low_watermark(bench.pipeline, delta, now)
    assert mark.time == moment(int((NOON + 10) * MICROS)), mark  # b's, the first good record that is unread
    bench.join()
    rest = 2e9
    mark = low_watermark(bench.pipeline, delta, rest)
    assert (mark.time, mark.why) == (
        moment(int((rest - 60) * MICROS)),
        "primary: at rest, all read, so complete up to 2033-05-18 03:32 UTC",
    )
    half = bench.folder / "primary" / "half.jsonl"
    half.write_text('{"event_id":')
    os.utime(half, (time.time() - 100,) * 2)
    mark = low_watermark(bench.pipeline, delta, rest)
    assert (mark.time, mark.why.startswith(f"primary: unfinished-line: {half}: ")) == (None, True)
    half.unlink()
    bench.clicks("{broken")
    assert "no good record" in low_watermark(bench.pipeline, delta, rest).why
    (bench.folder / "primary").rename(bench.folder / "away")
    assert low_watermark(bench.pipeline, delta, rest).time is None
