"""Where the events of each date are, and what is known of the dates."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.ids import bucket_at
from clickjoin.report import by_date, checks
from clickjoin.report.registry import registry
from clickjoin.report.status import waiting
from clickjoin.retry.pending import open_rows
from clickjoin.schemas import ALL

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    tables = ArrowTables(f"{tmp_path}/p")
    for table in ALL:
        tables.create(table)
    return tables


def event(number: int, hours: float = 0, **more: Any) -> dict[str, Any]:
    at = NOON + timedelta(hours=hours)
    return {"event_id": str(number), "event_time": at, "bucket": bucket_at(at, 3600), "shard": number % 4, **more}


def published(number: int, hours: float = 0) -> dict[str, Any]:
    row = event(number, hours)
    del row["shard"]
    return row | {"event_date": row["event_time"].date()}


def waits(number: int, hours: float = 0, **more: Any) -> dict[str, Any]:
    row = event(number, hours, replica="main", round=0, attempt=1, state="waiting", first_seen=NOON)
    del row["bucket"], row["shard"]
    return row | more


def test_counts_by_date(delta: ArrowTables) -> None:
    delta.append("foreign", [event(1), event(1), event(2, 13)])
    delta.append("joined", [published(1)])
    delta.append("joined", [published(2, 13)])
    delta.append("unjoinable", [event(3), event(4, -11)])
    delta.append("filtered", [event(5, -13)])
    delta.append("expired", [event(6), event(6), event(7)])
    found = {what: by_date.count(delta, what) for what in by_date.TABLES}
    first, second = "2026-03-01", "2026-03-02"
    assert found["landed"] == {first: 2, second: 1}
    assert found["joined"] == {first: 1, second: 1}
    assert found["unjoinable"] == {first: 2}
    assert found["filtered"] == {"2026-02-28": 1}
    assert found["expired"] == {first: 2}  # an id, not a row
    assert found["pending"] == found["quarantined"] == found["claimed"] == {}


def test_pending_is_what_status_says(delta: ArrowTables) -> None:
    delta.append("pending", [
        waits(1), waits(1, attempt=2),
        waits(2), waits(2, attempt=2, state="resolved"),
        waits(3, attempt=9), waits(3, attempt=9, state="resolved"), waits(3, round=1, attempt=0),
        waits(4, 24), waits(4, 24, replica="west"),
    ])  # fmt: skip
    assert by_date.count(delta, "pending") == {"2026-03-01": 2, "2026-03-02": 1}
    assert {row["event_id"] for row in open_rows(delta)} == {"1", "3", "4"}
    assert waiting(delta) == {
        "main": {"pending": 3, "oldest_pending": "2026-03-01T12:00:00+00:00"},
        "west": {"pending": 1, "oldest_pending": "2026-03-02T12:00:00+00:00"},
    }


def test_accepted_are_ids_not_records(delta: ArrowTables) -> None:
    delta.append("foreign", [event(1), event(1), event(1), event(2), event(3), event(4)])
    delta.append("joined", [published(1)])
    delta.append("pending", [waits(2), waits(2, attempt=2), waits(2, replica="west")])
    delta.append("expired", [event(3), event(3)])
    delta.append("filtered", [event(4)])
    delta.append("quarantine", [{"at": NOON, "part": None}])
    (day,) = by_date.calendar({what: by_date.count(delta, what) for what in by_date.TABLES}, {})
    assert (day["accepted"], day["landed"], day["joined"], day["quarantined"]) == (4, 6, 1, 1)


def test_accepted_does_not_shrink_with_rows_that_are_gone(delta: ArrowTables) -> None:
    """What is claimed is in an output, or forgotten: the rest is missing, and was accepted all the same."""
    delta.append("registry", [event(n) for n in range(1, 7)])
    delta.append("joined", [published(1), published(2)])
    delta.append("filtered", [event(3)])
    delta.append("pending", [waits(9)])
    delta.append("forgotten", [
        {"stream": "foreign", "event_id": "4", "event_time": NOON}, {"stream": "primary", "event_id": "q"},
    ])  # fmt: skip
    (day,) = by_date.calendar({what: by_date.count(delta, what) for what in by_date.TABLES}, {})
    assert (day["accepted"], day["missing"], day["claimed"]) == (6, 2, 6)


def test_the_newest_row_of_a_date_is_its_state(delta: ArrowTables) -> None:
    day = date(2026, 3, 1)
    delta.append("dates", [{"date": day, "at": NOON + timedelta(hours=2), "state": "closed", "revision": 1}])
    delta.append("dates", [{"date": day, "at": NOON, "state": "open"}])
    delta.append("joined", [published(2, 24)])
    counts = {"joined": by_date.count(delta, "joined")}
    first, second = by_date.calendar(counts, by_date.states(delta))
    assert (first["date"], first["state"], first["joined"], first["close"]["history"]) == ("2026-03-01", "closed", 0, 2)
    assert (second["date"], second["state"], second["joined"], second["close"]) == ("2026-03-02", None, 1, None)


def test_registry_by_bucket_and_shard(delta: ArrowTables) -> None:
    delta.append("registry", [event(1), event(5), event(2, 1)])
    delta.append("registry", [event(9)])
    found = registry(delta)
    assert [(one["bucket"], one["rows"], one["files"]) for one in found["buckets"]] == [
        ("2026-03-01T1200Z", 3, 2),
        ("2026-03-01T1300Z", 1, 1),
    ]
    assert {(one["bucket"], one["shard"]): one["rows"] for one in found["cells"]} == {
        ("2026-03-01T1200Z", 1): 3,
        ("2026-03-01T1300Z", 2): 1,
    }
    assert all(one["bytes"] > 0 for one in found["cells"])
    assert found["shards"]["1"]["rows"] == 3


def test_verifications(delta: ArrowTables) -> None:
    def row(run: str, at: datetime, kind: str, **more: Any) -> dict[str, Any]:
        whole = {"run": run, "at": at, "from_time": NOON, "to_time": at, "kind": kind, "fault": True, "checked": 10}
        return whole | {"count": 0, "repaired": 0, "samples": "[]", "seconds": 3.0} | more

    delta.append("verification", [
        row("a", NOON, "lost", count=2, repaired=2, samples='[{"event_id": "1"}]'),
        row("a", NOON, "unread", checked=5_000_000),
        row("a", NOON, "elsewhere", count=4, fault=False),
        row("b", NOON + timedelta(hours=1), "lost", count=1),
    ])  # fmt: skip
    newest, older = checks.verifications(delta, 10)
    assert (newest["run"], newest["ok"]) == ("b", False)
    assert (older["ok"], older["ids"], older["bytes"]) == (True, 10, 5_000_000)
    assert [(one["kind"], one["count"]) for one in older["found"]] == [("lost", 2), ("elsewhere", 4)]
    assert checks.verifications(delta, 1) == [newest]
    assert [run["full"] for run in checks.verifications(delta, 10, 3000)] == [True, False]
    assert [run["full"] for run in checks.verifications(delta, 10, 7200)] == [False, False]


def test_quality(delta: ArrowTables) -> None:
    day = date(2026, 3, 1)

    def row(at: datetime, check: str, level: str, success: bool | None) -> dict[str, Any]:
        return {"run": f"main/{at.hour}", "at": at, "date": day, "suite": "joined", "check": check, "level": level,
                "success": success, "samples": '["x"]', "seconds": 1.0}  # fmt: skip

    later = NOON + timedelta(hours=1)
    delta.append("quality", [
        row(NOON, "a", "fail", False), row(later, "a", "fail", True), row(later, "b", "warn", None),
        row(later, "c", "warn", False), row(later, "d", "fail", False),
    ])  # fmt: skip
    newest, older = checks.qualities(delta, 10)
    assert (newest["passed"], newest["failed"], newest["warned"], newest["undecided"]) == (1, 1, 1, 1)
    assert (older["run"], older["failed"], older["date"]) == ("main/12", 1, "2026-03-01")
    found = checks.checks(delta, day)
    assert [one["check"] for one in found] == ["d", "c", "b", "a"]
    assert [one["outcome"] for one in found] == ["failed", "warned", "undecided", "passed"]  # as reports say it
    assert checks.checks(delta, date(2026, 3, 2)) == []
    earlier = row(later, "a", "fail", False) | {"date": date(2026, 2, 28), "observed": 3.0, "expected": "none"}
    delta.append("quality", [earlier])
    assert checks.over_dates(delta, "joined", "a") == [
        {"date": "2026-02-28", "outcome": "failed", "observed": 3.0, "expected": "none"},
        {"date": "2026-03-01", "outcome": "passed", "observed": None, "expected": None},
    ]
