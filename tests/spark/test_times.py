"""Where events keep their time: in a UUIDv7, in a column, or only known to lie within a range."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clickjoin.config import Lookback
from clickjoin.dispatcher.unread import primary_passed
from clickjoin.report.explain import explain
from tests.spark.bench import MICROS, NOON, Bench, click, event_id, query
from tests.spark.count import agrees


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(NOON, UTC) + timedelta(seconds=seconds)


def test_within(make: Any) -> None:
    """A query with the click's primary id counts if it lies up to two minutes before the click, the latest of two."""
    bench = make(foreign={"primary_time": {"lookback": "2m", "skew": "0s"}}, primary={"event_time": "at"})
    queries = [("old", -121), ("edge", -120), ("same", 0), ("after", 0.000001), ("twice", -60), ("twice", -50)]
    bench.queries(*({"event_id": name, "at": at(seconds).isoformat()} for name, seconds in queries))
    names = ("old", "edge", "same", "after", "twice", "none")
    bench.clicks(*({"event_id": event_id(name, 0), "query_id": name} for name in names))
    assert bench.join() == {"primary_in": 6, "events_in": 6, "joined": 3, "pending": 3}
    assert bench.rows("joined", "primary_id", "primary_time") == [
        ("edge", at(-120)),
        ("same", at(0)),
        ("twice", at(-50)),
    ]
    assert bench.places()["pending"] == ["after", "none", "old"]
    assert {row[0] for row in bench.rows("foreign", "primary_time")} == {None}
    bench.queries({"event_id": "none", "at": at(-1).isoformat()})
    bench.join()
    assert bench.retry(after=10) == {"events_in": 3, "joined": 1, "pending": 2}
    assert ("none", at(-1)) in bench.rows("joined", "primary_id", "primary_time")


def test_a_clock_that_is_ahead(make: Any) -> None:
    """A query may lie after the click by `skew`, a second by default; what lies before it comes first."""
    bench = make(foreign={"primary_time": {"lookback": "2m"}}, primary={"event_time": "at"})
    queries = [("next", 0.2), ("edge", 1), ("late", 1.000001), ("both", 0.5), ("both", -90), ("two", 0.9), ("two", 0.2)]
    bench.queries(*({"event_id": name, "at": at(seconds).isoformat()} for name, seconds in queries))
    bench.clicks(*({"event_id": event_id(name, 0), "query_id": name} for name in ("edge", "late", "both", "two")))
    bench.clicks({"event_id": event_id("n", -0.3), "query_id": "next"})  # in the bucket before its query's
    bench.join()
    assert bench.rows("joined", "primary_id", "primary_time") == [
        ("both", at(-90)), ("edge", at(1)), ("next", at(0.2)), ("two", at(0.2)),
    ]  # fmt: skip
    assert bench.places()["pending"] == ["late"]


def test_none_is_given_up_before_its_query_can_have_landed(make: Any) -> None:
    """By the watermark a click has no query once that is past the latest that one may lie: its own time and `skew`."""
    bench: Bench = make(foreign={"primary_time": {"lookback": "2m", "skew": "5s"}}, primary={"event_time": "at"})
    bench.queries({"event_id": "q", "at": at(60).isoformat()})
    bench.clicks({"event_id": event_id("a", 61), "query_id": "q"})
    bench.join()
    bench.queries({"event_id": "r", "at": at(70).isoformat()})
    bench.join()
    exact = Lookback.model_validate({"lookback": "2m", "skew": "0s"})
    foreign = bench.pipeline.foreign.model_copy(update={"primary_time": exact})
    without = bench.pipeline.model_copy(update={"foreign": foreign})
    passed = [primary_passed(pipeline, bench.engine.lake.delta, "main") for pipeline in (bench.pipeline, without)]
    assert None not in passed
    assert passed[1] - passed[0] == 5 * MICROS


def test_why_an_event_is_not_joined(make: Any) -> None:
    bench: Bench = make(foreign={"primary_time": {"lookback": "2m"}}, primary={"event_time": "at"})
    queries = {"ahead": 5, "before": -300, "Case ": -1, "joined": -1}
    bench.queries(*({"event_id": name, "at": at(seconds).isoformat()} for name, seconds in queries.items()))
    names = {name: event_id(name, 0) for name in ("ahead", "before", "case", "none", "joined")}
    bench.clicks(*({"event_id": click, "query_id": name} for name, click in names.items()))
    bench.join()
    delta = bench.engine.lake.delta
    said = {name: explain(bench.pipeline, delta, click) for name, click in names.items()}
    assert {name: found["state"] for name, found in said.items() if name != "joined"} == dict.fromkeys(
        ("ahead", "before", "case", "none"), "pending"
    )
    assert "'ahead' has landed and lies 5 s after it" in said["ahead"]["remedy"]
    assert "'before' has landed and lies 0:05:00 before it" in said["before"]["remedy"]
    assert "'case' has not landed, but 'Case ' has" in said["case"]["remedy"]
    assert said["none"]["remedy"].startswith("Its primary event 'none' has not landed. It is tried again")
    clicks = explain(bench.pipeline, delta, "joined")["history"]
    assert [(step["table"], step["event_id"]) for step in clicks] == [
        ("primary", "joined"),
        ("joined", names["joined"]),
    ]


def test_why_an_event_that_names_a_time_is_not_joined(make: Any) -> None:
    bench: Bench = make(primary={"event_time": "at"}, foreign={"event_time": "at", "primary_time": "query_at"})
    bench.queries({"event_id": "q", "at": at(0.000123).isoformat()})
    bench.clicks({"event_id": "c", "at": at(1).isoformat(), "query_id": "q", "query_at": at(0).isoformat()})
    bench.join()
    remedy = explain(bench.pipeline, bench.engine.lake.delta, "c")["remedy"]
    assert "(0.000123 s apart; its copy of the time is coarser)" in remedy


def test_times_in_columns(make: Any) -> None:
    """Identity is (id, time): one id at two times is two events, on both sides."""
    bench = make(primary={"event_time": "at"}, foreign={"event_time": "at", "primary_time": "query_at"})
    bench.queries(
        {"event_id": "q", "at": at(0).isoformat(), "n": 1}, {"event_id": "q", "at": at(-7200).isoformat(), "n": 2}
    )
    times = [(5, 0), (5, 0), (6, 0), (6.000001, -7200), (7, 1)]
    bench.clicks(
        *({"event_id": "c", "at": at(a).isoformat(), "query_id": "q", "query_at": at(b).isoformat()} for a, b in times)
    )
    assert bench.join() == {"primary_in": 2, "events_in": 5, "joined": 3, "repeats": 1, "pending": 1}
    joined = [
        (a, b, json.loads(record)["n"])
        for a, b, record in bench.rows("joined", "event_time", "primary_time", "primary_record")
    ]
    assert sorted(joined) == [(at(5), at(0), 1), (at(6), at(0), 1), (at(6.000001), at(-7200), 2)]
    assert sorted(bench.rows("registry", "event_time")) == [(at(5),), (at(6),), (at(6.000001),)]
    assert agrees(bench)


def uuid7(seconds: float, tail: int) -> str:
    millis = round((NOON + seconds) * 1000)
    return str(uuid.UUID(int=millis << 80 | 7 << 76 | 2 << 62 | tail))


def test_uuid7(make: Any) -> None:
    bench = make(primary={"event_time": "uuid7"}, foreign={"event_time": "uuid7", "primary_time": "uuid7"})
    q, c, d = uuid7(-7200.5, 1), uuid7(0.001, 2), uuid7(1, 3)
    bench.queries({"event_id": q})
    bench.clicks(
        {"event_id": c, "query_id": q}, {"event_id": c, "query_id": q}, {"event_id": d, "query_id": uuid7(0, 9)}
    )
    assert bench.join() == {"primary_in": 1, "events_in": 3, "joined": 1, "repeats": 1, "pending": 1}
    assert bench.rows("joined", "event_id", "event_time", "bucket", "primary_id", "primary_time") == [
        (c, at(0.001), "2026-03-01T1200Z", q, at(-7200.5))
    ]


@pytest.mark.parametrize("width", ["1m", "1d"])
def test_primary_events_in_other_buckets(make: Any, width: str) -> None:
    """Look-up reads the buckets that the clicks name, wherever they are."""
    bench = make(registry={"bucket": width, "retention": "30d"})
    queries = [query(f"q{n}", -86_400 * n / 3) for n in range(6)]
    bench.queries(*queries)
    bench.clicks(*(click(f"c{n}", 1, of) for n, of in enumerate(queries[:-1])), click("lost", 1, query("q0", -1)))
    assert bench.join() == {"primary_in": 6, "events_in": 6, "joined": 5, "pending": 1}
    pairs = [(c[:2], q[:2]) for c, q in bench.rows("joined", "event_id", "primary_id")]
    assert pairs == [(f"c{n}", f"q{n}") for n in range(5)]
    assert all(
        int(row[0].rsplit(":", 1)[1]) == row[1].timestamp() * MICROS
        for row in bench.rows("joined", "primary_id", "primary_time")
    )
