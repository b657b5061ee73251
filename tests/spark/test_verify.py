"""Verification: quiet on a healthy lake, whatever it went through; every fault made by hand is found and counted."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clickjoin.engines.arrow import ArrowLake
from clickjoin.jobs import checking
from clickjoin.model import failpoint
from clickjoin.registry.boundary import advance
from tests.sampled import FULL, in_full
from tests.spark.bench import NOON, Bench, click, event_id, query
from tests.spark.hand import FAULTS, Hand, damage, found, hosts, verify


def test_a_healthy_lake(healthy: Bench) -> None:
    before = healthy.all_tables()
    for replica in ("main", "west"):
        report = verify(healthy, replica)
        assert (found(report), report.ok, report.notes) == ({}, True, ())
        assert re.fullmatch(
            r"15 ids since 2026-0\d-\d\d \d\d:\d\d and [1-9][\d,]* bytes of input checked: no fault", report.verdict
        )
    noted = {count.kind: count.count for count in report.counts if not count.fault}
    assert noted == {"late_repeat": 0, "claimed_elsewhere": 1, "in_flight": 0, "forgotten": 0, "unproven": 0}
    assert {count.kind: count.checked for count in report.counts}["lost"] == 15
    logs = [part for stream in ("primary", "foreign") for part in (healthy.folder / stream).iterdir()]
    sizes = [part.stat().st_size * (8 if part.suffix == ".gz" else 1) for part in logs]  # packed ones are an estimate
    assert {count.kind: count.checked for count in report.counts}["unread"] == 2 * sum(sizes)
    after = healthy.all_tables()
    assert len(after.pop("verification")) == 2 * len(report.counts)
    before.pop("verification")
    assert after == before


def test_what_is_written_and_returned(healthy: Bench) -> None:
    said: list[str] = []
    result = checking.verify(
        healthy.spark, healthy.pipeline, "main", said.append, since="2026-03-01", until="2026-03-02"
    )
    assert json.loads(json.dumps(result)) == result
    assert result["ok"]
    assert (result["from"], result["to"]) == ("2026-03-01T00:00:00+00:00", "2026-03-02T00:00:00+00:00")
    rows = [row for row in healthy.engine.lake.delta.read("verification").to_pylist() if row["run"] == result["run"]]
    kinds = {row["kind"]: (row["fault"], row["count"], row["repaired"]) for row in rows}
    assert kinds == dict.fromkeys(result["found"], (True, 0, 0)) | {
        kind: (False, count, 0) for kind, count in result["counted"].items()
    }
    assert {row["samples"] for row in rows} == {"[]"}
    assert len(rows) == 22
    empty = checking.verify(
        healthy.spark, healthy.pipeline, "main", said.append, since="2026-04-01", until="2026-04-02"
    )
    assert (empty["ok"], empty["checked"]) == (True, 0)


def test_every_fault_of_events(hand: Hand) -> None:
    damage(hand)
    hand.bench.clock.now += 1
    report = verify(hand.bench)
    assert found(report) == {kind: len(ids) for kind, ids in FAULTS.items()} | {"unread": 2}
    assert hosts(report) == FAULTS
    assert not report.ok
    assert report.verdict.startswith("faults left: 1 lost, 2 doubled, ")
    written = hand.bench.engine.lake.delta.read("verification").to_pylist()
    rows = {row["kind"]: row for row in written if row["run"] == report.run}
    samples = json.loads(rows["lost"]["samples"])
    assert samples == [{"event_id": event_id("u", 21), "event_time": "2026-03-01T12:00:21+00:00"}]
    assert hand.bench.rows("findings") == []


def test_every_fault_of_records(hand: Hand) -> None:
    hand.delete("foreign", "a", where="path LIKE '%gz'")  # the last record of a packed file, by both replicas
    hand.table("quarantine").delete("reason = 'broken-json' AND replica = 'main'")
    hand.table("primary").delete("event_id LIKE 'p:%'")  # in a CSV file, by both
    hand.add("foreign", next(row for row in hand.rows("foreign", "d") if row["replica"] == "main"))
    report = verify(hand.bench)
    assert found(report) == {"unread": 5, "overread": 1}
    samples = [sample for count in report.counts if count.kind in ("unread", "overread") for sample in count.samples]
    seen = sorted((sample["path"].rsplit("/", 1)[-1], sample["replica"], sample["records"]) for sample in samples)
    assert seen == [
        ("0.jsonl", "main", 1),
        ("0.jsonl", "main", 1),
        ("1.csv", "main", 1),
        ("1.csv", "west", 1),
        ("3.jsonl.gz", "main", 1),
        ("3.jsonl.gz", "west", 1),
    ]
    (broken,) = [sample for sample in samples if "0.jsonl" in sample["path"] and "in no table" in sample["detail"]]
    assert broken["to"] - broken["from"] == len("\n{broken\n")  # after a blank line


def test_bytes_of_a_file_that_is_gone_are_unproven(hand: Hand) -> None:
    log = hand.bench.folder / "foreign" / "2.csv"
    text = log.read_bytes()
    log.unlink()
    try:
        report = verify(hand.bench)
    finally:
        log.write_bytes(text)
    assert report.ok
    assert {count.kind: count.count for count in report.counts}["unproven"] == 2  # its header, for both replicas
    assert report.notes == ("2 byte ranges are unproven: no row holds these bytes, and no file does any more",)


@pytest.fixture(scope="module")
def moving(make: Any) -> Bench:
    """One click given up, and one that nobody has read yet."""
    bench: Bench = make(retry={"max_attempts": 1, "max_age": "1s", "first_delay": "1s", "max_delay": "1s"})
    bench.queries(query("q"))
    bench.clicks(click("u", 1, query("never")))
    bench.join()
    bench.retry(after=5)
    bench.clicks(click("a", 2, query("q")))
    return bench


def stop_at(patch: pytest.MonkeyPatch, point: str) -> None:
    """End a batch at a named point, as a crash would."""

    def reach(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    patch.setattr(failpoint, "reach", reach)


# One batch, which comes a little further each time.
@pytest.mark.parametrize("point", ["landed", "claimed", "published", "set-aside"][slice(None) if FULL else slice(1, 2)])
def test_a_batch_in_flight_is_let_alone(moving: Bench, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, point)
        with pytest.raises(KeyboardInterrupt):
            moving.replica("main").join_once()
    before = moving.all_tables()
    report = verify(moving, repair=True)
    assert (found(report), moving.all_tables() | {"verification": []}) == ({}, before | {"verification": []})
    noted = {count.kind: count.count for count in report.counts if not count.fault}
    assert noted["in_flight"] == (point == "claimed")


def test_a_redrive_in_flight_is_let_alone(moving: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    moving.engine = moving.replica("main")
    moving.join()
    append = ArrowLake.append

    def stop(lake: ArrowLake, name: str, *rest: Any) -> None:
        if name == "pending":
            raise KeyboardInterrupt
        append(lake, name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(ArrowLake, "append", stop)
        with pytest.raises(KeyboardInterrupt):
            moving.engine.redrive()
    assert "u" not in moving.claims()
    assert found(verify(moving, repair=True)) == {}
    assert moving.replica("main").redrive() == 1
    assert found(verify(moving)) == {}


@in_full
def test_claims_below_the_boundary_are_not_asked_for(moving: Bench) -> None:
    delta = moving.engine.lake.delta
    delta.open("registry").delete("event_id LIKE 'a:%'")
    assert found(verify(moving)) == {"output_without_claim": 1}
    advance(delta, 4, datetime.fromtimestamp(NOON, UTC) + timedelta(seconds=30), datetime.now(UTC))
    assert found(verify(moving, repair=True)) == {}
    assert moving.claims() == {}


def test_an_id_with_two_times(make: Any) -> None:
    foreign = {"event_time": "time", "primary_time": {"lookback": "1h"}}
    bench: Bench = make(foreign=foreign, primary={"event_time": "time"})
    bench.queries({"event_id": "q", "time": "2026-03-01T11:59:00Z"})
    bench.clicks(*({"event_id": "c", "query_id": "q", "time": f"2026-03-01T12:00:0{at}Z"} for at in (1, 2, 2)))
    bench.join()
    report = verify(bench)
    assert report.ok
    (count,) = [count for count in report.counts if count.kind == "two_times"]
    assert (count.count, count.fault) == (1, False)
    assert count.samples == ({"event_id": "c", "event_time": count.samples[0]["event_time"]},)


def test_all_that_is_kept_is_covered_once_a_day(make: Any) -> None:
    """What lies before verify.window is looked at first, and again a day later; the window in between."""
    bench: Bench = make(registry={"retention": "30d"}, verify={"window": "1h"})
    old = query("q", -20 * 86400)
    bench.queries(old)
    bench.clicks(*(click(f"c{n}", n - 20 * 86400, old) for n in range(3)))
    bench.join()
    oldest = datetime.fromtimestamp(NOON - 20 * 86400, UTC)
    reports = []
    for later in (0, 3600, 86_000):  # seconds after the one before
        bench.clock.now += later
        reports.append(verify(bench))
    assert [report.span.low <= oldest for report in reports] == [True, False, True]
    assert [count.checked for report in reports for count in report.counts if count.kind == "lost"] == [3, 0, 3]
    Hand(bench).delete("joined", "c1")
    bench.clock.now += 90_000
    assert found(verify(bench)) == {"claim_without_output": 1}
    bench.clock.now += 60
    assert found(verify(bench, repair=True)) == {"claim_without_output": 1}  # what is left is looked for at once
    bench.clock.now += 60
    assert verify(bench).span.low > oldest


def test_an_older_row_that_is_gone_is_looked_for(make: Any) -> None:
    """Whoever names no range has all looked at where the sums do not agree; else it is said what was not."""
    bench: Bench = make()
    bench.queries(query("q"))
    bench.clicks(click("a", 1, query("q")), click("b", 2, query("q")))
    bench.join()

    def job(**given: Any) -> dict[str, Any]:
        return checking.verify(bench.spark, bench.pipeline, "main", [].append, **given)

    assert job()["ids"] == 2
    newest = job()
    assert (newest["ids"], "; older events were verified at " in newest["verdict"]) == (0, True)
    assert newest["verdict"].endswith("; all: --from 2026-03-01")
    Hand(bench).delete("joined", "a")
    done = job(repair=True)
    assert (done["ids"], done["repaired"]) == (2, {"claim_without_output": 1})
    assert done["verdict"].endswith("1 event is dispatched again: the running join, or `clickjoin drain`, joins it")
    bench.retry(after=5)
    assert len(bench.rows("joined")) == 2
