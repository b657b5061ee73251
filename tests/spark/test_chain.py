"""A pipeline that reads the output of another: queries, clicks, conversions."""

from __future__ import annotations

import json
import time
from datetime import date
from itertools import product
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable

from clickjoin.chain.source import Upstream
from clickjoin.dates.closing import Order, close
from clickjoin.model import failpoint
from clickjoin.model.ids import MICROS, micros_of, moment
from clickjoin.model.span import Day
from clickjoin.report.chain import chain_status, downstream, explain_chain
from clickjoin.verification.verify import Verifier, Wanted
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench, click, event_id, query
from tests.spark.count import agrees
from tests.spark.hand import Hand, found, stopped

TODAY = Day(date(2026, 3, 1))
Q, LATE = query("q"), query("late", 1)
A, B, W = click("a", 2, Q), click("b", 3, Q), click("w", 4, LATE)


def conversion(host: str, seconds: float, of: Any, **more: Any) -> dict[str, Any]:
    """A conversion of a click."""
    return {"event_id": event_id(host, seconds), "click_id": of["event_id"], **more}


class Chain(NamedTuple):
    """Clicks on queries, and conversions on those."""

    clicks: Bench
    sales: Bench

    def verify(self) -> dict[str, int]:
        return found(Verifier(self.sales.replica("main"), lambda _: None, patience=0).verify(Wanted()))


def chain(make: Any, role: str = "primary", **fields: Any) -> Chain:
    clicks = make(close={"idle_timeout": "15m"})
    source = {"kind": "pipeline", "name": "bench"}
    own: dict[str, Any] = {"primary": {}, "foreign": {"primary_id": "click_id"}}
    own[role]["source"] = source
    sales = make(pipeline="sales", lake=clicks.pipeline.lake, close={"idle_timeout": "15m"}, **own, **fields)
    return Chain(clicks, sales)


def test_conversions_meet_the_clicks_that_met_their_queries(make: Any) -> None:
    clicks, sales = chain(make)
    clicks.queries(Q)
    clicks.clicks(A, B, W)
    assert clicks.join() == {"primary_in": 1, "events_in": 3, "joined": 2, "pending": 1}
    sales.clicks(conversion("c1", 10, A), conversion("c2", 11, W))
    assert sales.join() == {"primary_in": 2, "events_in": 2, "joined": 1, "pending": 1}
    clicks.queries(LATE)
    clicks.join()
    assert clicks.retry(10) == {"events_in": 1, "joined": 1}
    assert sales.join() == {"primary_in": 1}
    assert sales.retry(10) == {"events_in": 1, "joined": 1}
    _explained(clicks, sales)
    row = json.loads(sales.rows("joined", "primary_record")[0][0])
    assert (row["event_id"], row["primary_record"]["event_id"], row["foreign_record"]["query_id"]) == (
        A["event_id"], Q["event_id"], Q["event_id"],
    )  # fmt: skip
    assert row["bucket"] == "2026-03-01T1200Z"
    assert agrees(sales)
    assert Chain(clicks, sales).verify() == {}


def _explained(clicks: Bench, sales: Bench) -> None:
    """An id is followed through both, whichever is asked, and status shows who reads whom."""
    both = {"clicks": [clicks.pipeline, sales.pipeline], "sales": [sales.pipeline, clicks.pipeline]}
    found = explain_chain(both["sales"], event_id("c2", 11))
    assert (found["state"], [(one["pipeline"], one["state"], one["event_id"]) for one in found["chain"]]) == (
        "joined", [("bench", "joined", W["event_id"])],
    )  # fmt: skip
    found = explain_chain(both["clicks"], W["event_id"])
    assert [(one["pipeline"], one["state"], one["event_id"].split(":")[0]) for one in found["chain"]] == [
        ("sales", "primary", "w"), ("sales", "joined", "c2"),
    ]  # fmt: skip
    assert explain_chain(both["sales"], "nobody:1:1")["chain"] == []
    stands = chain_status(both["clicks"])
    assert [(one["pipeline"], one["reads"], one["joined"], one["unread"]) for one in stands] == [
        ("bench", {}, 3, {}), ("sales", {"primary": "bench"}, 2, {"primary": 0}),
    ]  # fmt: skip
    assert chain_status([clicks.pipeline]) == []
    changes = downstream(both["clicks"], TODAY.span)
    assert [(one["pipeline"], one["stream"], one["records"]) for one in changes] == [("sales", "primary", 3)]
    assert downstream(both["sales"], TODAY.span) == []


@in_full
def test_nested_fields_of_the_upstream_name_the_events(make: Any) -> None:
    """An output as the stream that looks up; its ids are those of the queries, inside of its columns."""
    clicks = make()
    bench = {"kind": "pipeline", "name": "bench"}
    more = {"event_id": "event_id", "primary_id": "primary_record.event_id", "source": bench}
    pages = make(pipeline="pages", lake=clicks.pipeline.lake, foreign=more)
    clicks.queries(Q)
    clicks.clicks(A, B)
    clicks.join()
    pages.queries(Q)
    assert pages.join() == {"primary_in": 1, "events_in": 2, "joined": 2}
    assert sorted(pages.hosts("joined")) == ["a", "b"]


@pytest.mark.parametrize(("point", "local"), some(list(product(failpoint.POINTS, ["0B", "4MB"])), 14))
def test_joined_once_through_crashes(make: Any, monkeypatch: pytest.MonkeyPatch, point: str, local: str) -> None:
    """A batch of versions is cut short, by this process or Spark's workers: each conversion has its click, once."""
    clicks, sales = chain(make, batch={"driver_bytes": local, "max_events": 2})
    clicks.queries(Q)
    hosts = [f"h{at}" for at in range(3)]
    for at, host in enumerate(hosts):
        clicks.clicks(click(host, at, Q))
        clicks.join()
        sales.clicks(conversion(f"s{at}", 10 + at, click(host, at, Q)))
    stopped(monkeypatch, point, lambda: sales.replica("main").join_once())
    engine = sales.replica("main")
    while engine.join_once():
        pass
    sales.clock.now += 10
    while engine.retry_once():
        pass
    assert sorted(sales.hosts("joined")) == ["s0", "s1", "s2"]
    assert sorted(sales.hosts("primary")) == hosts
    assert agrees(sales)
    assert Chain(clicks, sales).verify() == {}


def test_what_the_upstream_rewrites_is_nothing_new(make: Any) -> None:
    """Its compaction brings no record, and rows that a MERGE copies none; those that a rebuild changed are repeats."""
    clicks = make(close={"idle_timeout": "15m"}, quality={"disable": ["*"]})
    again = make(
        pipeline="again", lake=clicks.pipeline.lake,
        foreign={"source": {"kind": "pipeline", "name": "bench"}, "primary_id": ["foreign_record.query_id"]},
    )  # fmt: skip
    clicks.queries(Q)
    again.queries(Q)
    for one in (A, B):
        clicks.clicks(one)
        clicks.join()
    assert again.join() == {"primary_in": 1, "events_in": 2, "joined": 2}
    DeltaTable(clicks.engine.lake.delta.path("joined")).optimize.compact()
    assert again.engine.join_once() is None
    hand = Hand(clicks)
    hand.delete("joined", "a")  # the row of b is copied to another file
    assert again.join() == {}
    assert "of those that it deleted the copies here stay" in again.rows("metrics", "batch", "problems")[-1][1]
    clicks.file.write_text(clicks.file.read_text() + "adapter: tests.spark.adapters_for_chains:Marked\n")
    clicks.reload()
    assert order(clicks.engine, action="rebuild")["done"]["rebuilt"] == 1
    clicks.clicks(click("c", 5, Q))
    clicks.join()
    assert again.join() == {"events_in": 2, "joined": 1, "repeats": 1}
    assert again.hosts("joined") == ["a", "b", "c"]
    assert agrees(again)
    assert found(Verifier(again.replica("main"), lambda _: None, patience=0).verify(Wanted())) == {}


def order(engine: Any, **more: Any) -> dict[str, Any]:
    return close(engine, TODAY, Order(**more), lambda _: None)


@in_full
def test_a_date_closes_after_the_upstreams(make: Any) -> None:
    """Here all is read and joined; but as long as the date may change upstream it is open."""
    clicks, sales = chain(make)
    clicks.queries(Q)
    clicks.clicks(A)
    clicks.rest(3600)
    clicks.join()
    sales.clicks(conversion("c1", 10, A))
    sales.rest(3600)
    sales.join()
    sales.clock.now = clicks.clock.now = time.time()
    first = order(sales.engine)
    assert (first["state"], first["ok"]) == ("open", False)
    assert "primary: bench has not closed 2026-03-01 (nobody has tried to)" in first["detail"]
    assert order(clicks.engine)["state"] == "closed"
    assert order(sales.engine)["state"] == "closed"


def test_the_upstreams_watermark_goes_along(make: Any) -> None:
    """An event that waits there holds up its output, and so the stream here, however much newer what came is."""
    clicks, sales = chain(make)
    clicks.queries(Q)
    clicks.clicks(A, W)
    clicks.join()
    clicks.clicks(B)
    clicks.join()
    mark = Upstream(clicks.pipeline.root).watermark()
    read = moment(int((NOON - 600) * MICROS))
    assert mark.time == read
    sales.clicks(conversion("c1", 10, A))
    sales.join()
    assert _marks(sales)["primary"] == micros_of(read)


def _marks(bench: Bench) -> dict[str, int]:
    return dict(bench.replica("main").join.journal.load().watermarks)
