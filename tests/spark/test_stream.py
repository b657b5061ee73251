"""One stream, deduplicated: each event once in `deduplicated`, with its record's columns, whatever crashes or races.

What must be there is counted by `counted`, which reads the logs and the table, and shares no code with the product.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from clickjoin.jobs.joining import redrive, retry
from clickjoin.model import failpoint
from clickjoin.model.errors import ConfigError
from clickjoin.processing.check import check
from clickjoin.processing.processing import Processing
from clickjoin.report.explain import explain
from clickjoin.spark.session import another, release
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench, crash_at
from tests.spark.hand import found, stopped, verify

Make = Callable[..., Bench]
MATRIX = os.environ.get("CLICKJOIN_MATRIX") == "all"  # `make matrix` runs them all
STREAM = {"source": {"kind": "files", "path": "foreign/*"}, "event_id": "messageId", "event_time": "receivedAt"}


def event(number: int, at: int = 0, **more: Any) -> dict[str, Any]:
    """An event with an id that has no time inside, so many seconds after noon."""
    name = str(uuid.UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC834 % 2**128))
    moment = datetime.fromtimestamp(NOON + at, UTC)
    return {"messageId": name, "receivedAt": f"{moment:%Y-%m-%dT%H:%M:%SZ}", "n": number, **more}


def counted(bench: Bench) -> tuple[set[tuple[str, datetime]], Counter[tuple[str, datetime]]]:
    """The events of the logs, and those of the output with how often each is there."""
    lines = [line for path in sorted((bench.folder / "foreign").iterdir()) for line in path.read_text().splitlines()]
    events = {_key(json.loads(line)) for line in lines if line.startswith("{") and line.endswith("}")}
    rows = DeltaTable(str(bench.disk / "deduplicated")).to_pyarrow_table(columns=["event_id", "event_time", "record"])
    for row in rows.to_pylist():
        assert _key(json.loads(row["record"])) == (row["event_id"], row["event_time"])
    return events, Counter((row["event_id"], row["event_time"]) for row in rows.to_pylist())


def _key(record: dict[str, Any]) -> tuple[str, datetime]:
    return record["messageId"], datetime.fromisoformat(record["receivedAt"])


def assert_exactly_once(bench: Bench) -> None:
    events, rows = counted(bench)
    assert set(rows) == events
    assert max(rows.values()) == 1


def new(make: Make, *first: dict[str, Any], **fields: Any) -> Bench:
    """A pipeline of one stream, whose log holds some events already."""
    return make(stream=STREAM, first=first, **fields)


@pytest.mark.parametrize("local", some(["0B", "64MB"], 2))
def test_repeats_in_a_batch_and_over_batches(make: Make, local: str) -> None:
    """The record's own columns are there, what is broken is in quarantine, and verification proves it id by id."""
    bench = new(make, event(1, user={"id": 7}), batch={"driver_bytes": local})
    bench.clicks(event(2, 5, price=1.5), event(2, 5, price=9.5), event(1), "{broken", event(3, 9))
    assert bench.join() == {"events_in": 5, "joined": 3, "repeats": 2, "quarantined": 1}
    bench.clicks(event(3, 9), event(4, 61), event(4, 62))  # the same id at another time is another event
    assert bench.join() == {"events_in": 3, "joined": 2, "repeats": 1}
    assert_exactly_once(bench)
    columns = DeltaTable(str(bench.disk / "deduplicated")).schema().to_arrow().names
    assert columns == [
        *("event_id", "event_time", "event_date", "bucket", "token", "replica", "published_at"),
        *("record", "messageId", "receivedAt", "n", "user"),
    ]
    rows = {row["n"]: row for row in bench.engine.lake.delta.read("joined").to_pylist()}
    assert json.loads(rows[1]["user"]) == {"id": 7}
    assert json.loads(rows[2]["record"])["price"] == 1.5  # of the events with one id and time the first counts
    assert not (bench.disk / "joined").exists()
    report = verify(bench)
    assert (report.ok, found(report)) == (True, {})
    assert bench.accounts()["agree"]


def test_time_passes_where_no_records_come(make: Make) -> None:
    """What is last in a log is final once the batch after it has said so, and time goes on where the log is at rest."""
    counts = {"key": "n", "processor": "clickjoin.processors:TumblingCounts", "args": {"window": "1m"}}
    bench = new(make, event(1), event(2, 1200), process=counts)
    bench.clock.now += 1800
    assert bench.join() == {"events_in": 2, "joined": 2}
    processing = Processing(bench.pipeline)
    processing.drain(lambda _: None)
    assert processing.tables.read("signals").num_rows == 0
    assert bench.join() == {}
    processing.drain(lambda _: None)
    assert processing.tables.read("signals")["key"].to_pylist() == ["1"]
    assert bench.engine.join_once() is None
    (log,) = (bench.folder / "foreign").iterdir()
    bench.clock.now += 3600
    os.utime(log, (bench.clock.now - 1000, bench.clock.now - 1000))
    assert [bench.join(), bench.join()] == [{}, {}]  # that the file was touched, and that time has passed
    assert bench.engine.join_once() is None
    processing.drain(lambda _: None)
    assert sorted(processing.tables.read("signals")["key"].to_pylist()) == ["1", "2"]
    assert (verify(bench).ok, check(bench.pipeline).faults) == (True, ())


@in_full
def test_verification_finds_what_is_wrong(make: Make) -> None:
    """A row that is lost, one that is there twice, a claim that is gone: each is a fault, and repaired.

    What a repair puts back is published by the next run.
    """
    bench = new(make, *(event(number, number) for number in range(6)))
    bench.join()
    output, registry = (DeltaTable(str(bench.disk / name)) for name in ("deduplicated", "registry"))
    output.delete("n = 1")
    registry.delete(f"event_id = '{event(2)['messageId']}'")
    doubled = output.to_pyarrow_table(filters=[("n", "=", 3)])
    write_deltalake(output, doubled, mode="append")
    report = verify(bench)
    assert found(report) == {"claim_without_output": 1, "output_without_claim": 1, "doubled": 1}
    verify(bench, repair=True, remove_doubles=True)
    bench.clock.now += 60
    bench.engine = bench.replica("main")
    bench.engine.run(0.1, retries=False, done=lambda _: None)
    assert_exactly_once(bench)
    assert found(verify(bench)) == {}


@pytest.mark.parametrize("point", failpoint.POINTS if MATRIX else ("published",))
def test_a_crash_at_each_step(make: Make, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    bench = new(make, *(event(number, number) for number in range(20)))
    bench.clicks(*(event(number, number) for number in range(10, 25)))
    stopped(monkeypatch, point, bench.join)
    bench.engine = bench.replica("main")
    bench.clicks(*(event(number, number) for number in range(20, 30)))
    bench.engine.drain(lambda _: None)
    assert_exactly_once(bench)


@pytest.mark.parametrize("after", [False, True] if MATRIX else [False])
@pytest.mark.parametrize("table", ["foreign", "joined"] if MATRIX else ["joined"])
def test_a_crash_beside_a_commit(make: Make, table: str, after: bool) -> None:
    bench = new(make, event(1), event(2), event(1))
    with crash_at(bench.engine.lake, table, after=after):
        bench.join()
    bench.engine = bench.replica("main")
    bench.engine.drain(lambda _: None)
    assert_exactly_once(bench)


def test_two_replicas_race(make: Make) -> None:
    """Both read the same log at once, and a copy of a batch that sleeps through its own claim wakes late."""
    bench = new(make, *(event(number, number) for number in range(40)))
    session = another(bench.spark)
    try:
        engines = [bench.replica("main"), bench.replica("west", session)]
        slow = engines[1].join.next_join()
        for start in (40, 60):
            threads = [threading.Thread(target=engine.drain, args=(lambda _: None,)) for engine in engines]
            for thread in threads:
                thread.start()
            bench.clicks(*(event(number, number) for number in range(start - 10, start + 20)))
            for thread in threads:
                thread.join()
        assert slow is not None
        bench.run_copy(slow)
    finally:
        release(session)
    for engine in (bench.replica("main"), bench.replica("west")):
        engine.drain(lambda _: None)
    assert_exactly_once(bench)
    assert found(verify(bench)) == {}


def test_what_waits_for_no_partner(make: Make) -> None:
    """Nothing is tried again: the commands say so; a history is given, and the output's table by its own name."""
    bench = new(make, event(1))
    bench.join()
    for job in (retry, redrive):
        with pytest.raises(ConfigError, match="is of one stream, whose events wait for nothing"):
            job(bench.spark, bench.pipeline, "main", print)
    found = explain(bench.pipeline, bench.engine.lake.delta, event(1)["messageId"])
    assert found["state"] == "joined"
    assert [step["table"] for step in found["history"]] == ["foreign", "registry", "deduplicated"]


def test_an_empty_log_gives_no_columns(make: Make) -> None:
    with pytest.raises(ConfigError, match="holds no good record yet to take the output's columns from"):
        make(stream=STREAM)
    bench = make(stream=STREAM, output={"columns": {"count": {"from": "stream.n", "type": "INT"}}, "records": "none"})
    bench.clicks(event(5), event(5))
    bench.join()
    assert bench.rows("joined", "event_id", "count") == [(event(5)["messageId"], 5)]
