"""A person's events leave every table and do not come back, and all else stays: counted in the files themselves."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow import dealing
from clickjoin.forgotten.known import forgotten
from clickjoin.jobs.upkeep import forget
from clickjoin.lake.vacuum import Needed, vacuum
from clickjoin.registry.boundary import advance
from clickjoin.report.explain import explain
from tests.sampled import crossed, in_full
from tests.spark.bench import NOON, Bench, click, event_id
from tests.spark.count import agrees
from tests.spark.hand import found, verify
from tests.spark.person import OTHERS, TABLES, P, Q, claimed, gone, holding, in_files, mine, other, run
from tests.spark.person import bench as bench
from tests.spark.person import forgotten_before as forgotten_before


def test_a_dry_run_says_what_would_go_and_changes_nothing(bench: Bench) -> None:
    before = bench.all_tables()
    said = run(bench, apply=False)
    assert said["dry_run"]
    assert (said["events"], said["bad_records"]) == ({"primary": 1, "foreign": 4}, 1)
    assert said["rows"] == {
        "primary": 1, "foreign": 4, "joined": 2, "pending": 2, "unjoinable": 1, "quarantine": 1
    }  # fmt: skip
    assert said["samples"]["primary"] == [P["event_id"]]
    assert bench.all_tables() == before


def test_they_leave_every_table_and_all_else_stays(bench: Bench) -> None:
    others = [row for row in bench.rows("joined") if row[0][0] in OTHERS]
    assert set(holding(bench)) == {"primary", "foreign", "joined", "pending", "unjoinable", "quarantine"}
    said = run(bench, request="GDPR-1")
    assert said["open"] == []
    assert bench.rows("forgotten", "stream", "event_id", "request")[-1] == ("primary", P["event_id"], "GDPR-1")
    gone(bench)
    assert bench.rows("joined") == others
    assert {row[:2] for row in bench.rows("foreign", "payload", "primary_id") if row[0] == "{}"} == {("{}", "")}
    report = verify(bench)
    assert {count.kind: count.count for count in report.counts}["forgotten"] == 4
    again = run(bench)
    assert (again["events"], again["rows"]) == ({"primary": 0, "foreign": 0}, {})
    state = explain(bench.pipeline, bench.engine.lake.delta, event_id("a", 2))
    assert (state["state"], state["history"][-1]["request"]) == ("forgotten", "GDPR-1")


@pytest.mark.usefixtures("forgotten_before")
@in_full
def test_a_repair_brings_nothing_back(bench: Bench) -> None:
    report = verify(bench, repair=True)
    assert not any(count.repaired for count in report.counts)
    bench.clock.now += 100
    while bench.engine.retry_once():
        pass
    assert bench.engine.redrive() == 1  # d, which was given up
    bench.retry(after=1)
    gone(bench)


@pytest.mark.usefixtures("forgotten_before")
@in_full
def test_claims_that_somebody_deleted_are_given_back(bench: Bench) -> None:
    """Without them the events, read again, would wait for a primary, and be given up: two places for one id."""
    table = DeltaTable(f"{bench.pipeline.root}/registry")
    assert table.delete("outcome = 'forgotten'")["num_deleted_rows"]
    deleted = {event for event, at in forgotten(bench.engine.lake.delta).of("foreign")} - set(claimed(bench))
    assert deleted
    report = verify(bench, repair=True)
    assert found(report) == {"forgotten_without_claim": len(deleted)}
    assert deleted <= set(claimed(bench))
    assert not found(verify(bench))
    west = bench.replica("west")
    bench.clock.now += 100
    while west.join_once() or west.retry_once():
        pass
    assert not deleted & {row[0] for name in ("pending", "unjoinable") for row in bench.rows(name, "event_id")}


@in_full
def test_what_expired_is_forgotten_too(bench: Bench) -> None:
    advance(bench.engine.lake.delta, 4, datetime.fromtimestamp(NOON, UTC), datetime.now(UTC))
    bench.clicks(mine("e", -60, Q))
    bench.engine = bench.replica("main")
    bench.join()
    assert bench.hosts("expired") == ["e"]
    run(bench)
    assert bench.hosts("expired") == []
    assert "e" not in bench.claims()
    west = bench.replica("west")
    while west.join_once():
        pass
    assert bench.rows("expired", "payload", "primary_id") == [("{}", "")]
    assert holding(bench) == {}
    bench.engine = bench.replica("main")
    assert (bench.accounts()["agree"], bench.accounts()["forgotten"]) == (True, 5)


@pytest.mark.parametrize(("how", "primary_time"), crossed(["here", "tasks"], ["asked", {"lookback": "1h"}]))
def test_of_two_events_with_one_id_only_one_is_forgotten(
    make: Any, monkeypatch: pytest.MonkeyPatch, how: str, primary_time: Any
) -> None:
    """Whoever names the other finds it still, although it is read later."""
    monkeypatch.setattr(dealing, "_ROWS_HERE", 20_000 if how == "here" else -1)
    made: Bench = make(primary={"event_time": "at"}, foreign={"primary_time": primary_time})
    at = [datetime.fromtimestamp(NOON + seconds, UTC).isoformat() for seconds in (0, 20)]
    mine, others = ({"event_id": "Q", "at": moment, "user": {"id": n}} for moment, n in zip(at, (17, 4), strict=True))
    made.queries(mine, others)
    made.join()
    assert run(made)["events"] == {"primary": 1, "foreign": 0}
    made.clicks(click("b", 30, others, asked=at[1]))
    made.join()
    assert made.places() == {"joined": ["b"]}
    assert json.loads(made.rows("joined", "primary_record")[0][0])["user"] == {"id": 4}


@in_full
def test_in_a_lake_whose_output_lies_by_date(make: Any) -> None:
    made: Bench = make(
        output={"partition": ["event_date"], "columns": {"who": {"from": "foreign.user_id", "type": "STRING"}}}
    )
    made.queries(P, Q)
    made.clicks(mine("a", 2, Q), other("c", 4, Q), mine("m", 86_400, Q))
    made.clock.now += 86_400
    made.join()
    assert made.places() == {"joined": ["a", "c", "m"]}
    assert run(made, "joined.who=U17")["rows"]["joined"] == 2
    assert holding(made) == {"primary": 1}  # of the query nobody has asked
    assert made.places() == {"joined": ["c"]}
    assert agrees(made)
    assert found(verify(made)) == {}


def test_by_ids_and_by_values_of_the_output(bench: Bench, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    ids.write_text(f"{event_id('h', 7)}\nnobody\n")
    assert run(bench, "joined.foreign_record.user_id=U1", apply=False)["events"] == {"primary": 0, "foreign": 3}
    wanted = {"where": None, "ids": str(ids)}
    said = forget(bench.spark, bench.pipeline, "main", print, apply=True, wait=0, **wanted)
    assert said["events"] == {"primary": 0, "foreign": 1}
    assert "h" not in bench.places()["joined"]
    assert set(holding(bench, event_id("h", 7))) == {"foreign", "registry", "forgotten"}
    assert ("{}",) in bench.rows("foreign", "payload")


@pytest.mark.usefixtures("forgotten_before")
def test_the_bytes_go_with_gc(bench: Bench) -> None:
    """Older versions hold the records until GC removes their files, once they are older than retention.files."""
    assert in_files(bench) > 0
    for name in TABLES:
        if (bench.disk / name).is_dir():
            delta = bench.replica("main").lake.delta
            vacuum(delta, name, Needed(since=4e9))
    assert in_files(bench) == 0
    gone(bench)
