"""One replica on real files, through joins, repeats, a late query and a retry: every table, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from clickjoin.model.ids import bucket_of
from clickjoin.registry.shards import load_timeline
from tests.spark.bench import MICROS, NOON, Bench, click, event_id, query

Q1, Q2 = query("q1", text="näh 日本"), query("q2", 1)
A = click("a", 2, Q1, extra={"x": [1, None]})
C = click("c", 4, Q2)


@pytest.fixture(scope="module", params=["all rows", "named rows alone"])
def life(make: Any, request: pytest.FixtureRequest) -> Iterator[tuple[Bench, list[Any]]]:
    """Three joins and two retries; returns what each batch counted, and what waited at last."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "all rows":  # as in tables where a batch names a few rows of many
            patch.setattr("clickjoin.lake.spark_reader._MIN_ROWS", 0)
            patch.setattr("clickjoin.lake.spark_reader._ROWS_PER_KEY", 0)
        yield _life(make())


def _life(bench: Bench) -> tuple[Bench, list[Any]]:
    seen: list[Any] = []
    bench.queries(Q1, Q1, "{broken")
    bench.clicks(A, {**A, "extra": "other content"}, click("b", 3, Q1), C, "[]")
    seen.append(bench.join())
    assert bench.engine.retry_once() is None  # c is not due yet
    bench.queries({**Q1, "text": "again"})
    bench.clicks({**A, "query_id": Q2["event_id"]}, click("d", 5, Q1), C)
    seen.append(bench.join())
    seen.append(bench.retry(after=10))
    bench.queries(Q2)
    seen.append(bench.join())
    seen.append(bench.retry(after=20))
    seen += [bench.engine.join_once(), bench.engine.retry_once(), bench.engine.waiting().all]
    return bench, seen


def at(seconds: float) -> datetime:
    return datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(seconds=seconds)


def test_counts(life: tuple[Bench, list[Any]]) -> None:
    assert life[1] == [
        {"primary_in": 2, "events_in": 4, "joined": 2, "repeats": 1, "pending": 1, "quarantined": 2},
        {"primary_in": 1, "events_in": 3, "joined": 1, "repeats": 1, "pending": 1},
        {"events_in": 1, "pending": 1},
        {"primary_in": 1},
        {"events_in": 1, "joined": 1},
        None,
        None,
        0,
    ]


def test_joined(life: tuple[Bench, list[Any]]) -> None:
    def row(host: str, seconds: int, of: dict[str, Any], of_seconds: int, token: str, record: Any) -> tuple[Any, ...]:
        times = (at(seconds), date(2026, 3, 1), "2026-03-01T1200Z", of["event_id"], at(of_seconds))
        return (event_id(host, seconds), *times, f"bench/main/{token}", "main", json.dumps(record), json.dumps(of))

    assert life[0].rows("joined") == [
        row("a", 2, Q1, 0, "join/1", A),
        row("b", 3, Q1, 0, "join/1", click("b", 3, Q1)),
        row("c", 4, Q2, 1, "retry/2", C),
        row("d", 5, Q1, 0, "join/2", click("d", 5, Q1)),
    ]


def test_claims(life: tuple[Bench, list[Any]]) -> None:
    bench = life[0]
    assert bench.claims() == {
        "a": ("main/join/1", "joined"),
        "b": ("main/join/1", "joined"),
        "c": ("main/retry/2", "joined"),
        "d": ("main/join/2", "joined"),
    }
    timeline = load_timeline(bench.engine.lake.delta)
    for name, moment, bucket, shard in bench.rows("registry", "event_id", "event_time", "bucket", "shard"):
        assert moment == at((int(name.rsplit(":", 1)[1]) / MICROS) - NOON)
        assert bucket == bucket_of(int(moment.timestamp()) * MICROS, 3600)
        assert shard == timeline.shard_of(name, moment)


def test_pending_is_a_history(life: tuple[Bench, list[Any]]) -> None:
    columns = ("event_id", "round", "attempt", "first_seen", "state", "outcome", "due_at", "sequence", "batch")
    assert life[0].rows("pending", *columns) == [
        (C["event_id"], 0, 1, at(60), "waiting", None, at(70), "join", 1),
        (C["event_id"], 0, 1, at(60), "waiting", None, at(70), "join", 2),
        (C["event_id"], 0, 2, at(60), "waiting", None, at(90), "retry", 1),
        (C["event_id"], 0, 3, at(60), "resolved", "joined", None, "retry", 2),
    ]
    payloads = life[0].rows("pending", "sequence", "payload")
    assert payloads == [("join", json.dumps(C))] * 2 + [("retry", None)] * 2


def test_landed_and_quarantined(life: tuple[Bench, list[Any]]) -> None:
    bench = life[0]
    assert bench.hosts("primary") == ["q1", "q1", "q1", "q2"]
    assert bench.hosts("foreign") == ["a", "a", "a", "b", "c", "c", "d"]
    assert bench.rows("quarantine", "stream", "reason", "raw", "batch") == [
        ("foreign", "not-an-object", b"[]\n", 1),
        ("primary", "broken-json", b"{broken\n", 1),
    ]
    for stream in ("primary", "foreign"):
        log = (bench.folder / stream / "0.jsonl").read_bytes()
        for path, offset, length, payload in bench.rows(stream, "path", "offset", "length", "payload"):
            assert path == f"{bench.folder}/{stream}/0.jsonl"
            assert log[offset : offset + length] == payload.encode() + b"\n"


def test_journal_and_metrics(life: tuple[Bench, list[Any]]) -> None:
    bench = life[0]
    numbers = [("join", 1), ("join", 2), ("join", 3), ("retry", 1), ("retry", 2)]
    assert bench.rows("journal", "sequence", "batch", "state") == sorted(
        [(*number, state) for number in numbers for state in ("planned", "settled")], key=repr
    )
    rows = bench.rows(
        "metrics", "sequence", "batch", "joined", "latency_p50", "latency_p99", "backlog_bytes", "problems"
    )
    assert rows == [
        ("join", 1, 2, 58, 58, 0, None),  # of two, half have waited 58 s or more
        ("join", 2, 1, 55, 55, 0, None),
        ("join", 3, 0, None, None, 0, None),
        ("retry", 1, 0, None, None, 0, None),
        ("retry", 2, 1, 86, 86, 0, None),
    ]
    steps = ("land", "lookup", "claim", "publish", "settle")
    first = bench.engine.lake.delta.read("metrics", filters=[("sequence", "=", "join"), ("batch", "=", 1)]).to_pylist()[
        0
    ]
    assert all(first[f"seconds_{step}"] > 0 for step in steps)


def test_accounts(life: tuple[Bench, list[Any]]) -> None:
    assert life[0].accounts() == {
        "primary_records": 5,
        "primary_events": 2,
        "primary_repeats": 2,
        "primary_quarantined": 1,
        "foreign_records": 8,
        "accepted": 4,
        "repeats": 3,
        "foreign_quarantined": 1,
        "joined": 4,
        "agree": True,
    }
