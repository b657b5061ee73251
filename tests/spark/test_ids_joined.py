"""Clicks known by their ids alone, joined to queries: sent again at any time, each is joined once.

The clock moves between batches, so that the same id lands at other times, and the rows that wait for one click's query
are of several times.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from clickjoin.model import failpoint
from tests.sampled import in_full, some
from tests.spark.bench import Bench, query
from tests.spark.hand import found, stopped, verify
from tests.spark.test_chain_ids import clicked
from tests.spark.test_stream_ids import later

Make = Callable[..., Bench]
Q, LATE = query("q"), query("late", 1)
FOREIGN = {
    "source": {"kind": "files", "path": "foreign/*"},
    "event_id": "messageId",
    "event_time": "receivedAt",
    "primary_id": "of",
    "primary_time": "embedded",
}


def new(make: Make, *first: dict[str, Any], **fields: Any) -> Bench:
    bench = make(foreign=FOREIGN, registry={"identity": "id", "shards": 3}, first=first, **fields)
    bench.queries(Q)
    return bench


def pairs(bench: Bench) -> Counter[tuple[str, str]]:
    """Pairs that were joined, and how often each is there."""
    rows = bench.rows("joined", "event_id", "foreign_record", "primary_id")
    assert all(json.loads(record)["messageId"] == event for event, record, _ in rows)
    return Counter((event, primary) for event, _, primary in rows)


def of(number: int, asked: dict[str, Any] = Q) -> tuple[str, str]:
    return clicked(number, 0, asked)["messageId"], asked["event_id"]


@pytest.mark.parametrize("local", some(["0B", "64MB"], 2))
def test_sent_again_while_it_waits_and_after(make: Make, local: str) -> None:
    bench = new(make, clicked(1, 0, Q), clicked(9, 9, LATE), batch={"driver_bytes": local})
    assert bench.join() == {"primary_in": 1, "events_in": 2, "joined": 1, "pending": 1}
    later(bench, 3600)
    bench.clicks(clicked(1, 1800, Q), clicked(2, 1800, Q), clicked(9, 1900, LATE))
    assert bench.join() == {"events_in": 3, "joined": 1, "repeats": 1, "pending": 1}
    bench.queries(LATE)
    bench.clicks(clicked(9, 2000, LATE), clicked(9, 2001, LATE))
    assert bench.join() == {"primary_in": 1, "events_in": 2, "joined": 1, "repeats": 1}
    bench.clock.now += 60
    while bench.engine.retry_once():
        pass
    assert pairs(bench) == Counter([of(1), of(2), of(9, LATE)])
    assert bench.accounts()["agree"]
    assert found(verify(bench)) == {}
    later(bench, 3600)
    bench.clicks(clicked(9, 0, LATE))
    assert bench.join() == {"events_in": 1, "repeats": 1}


@in_full
@pytest.mark.parametrize("point", some(failpoint.POINTS[3:] + failpoint.POINTS[:3], 7))
def test_whatever_crashes(make: Make, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """A join and a retry crash at a step, and another replica is sent the same clicks meanwhile."""
    bench = new(make, clicked(1, 0, Q), clicked(9, 9, LATE))
    stopped(monkeypatch, point, bench.engine.join_once)
    later(bench, 3600)
    bench.clicks(clicked(1, 1800, Q), clicked(9, 1900, LATE))
    other = bench.replica("other")
    while other.join_once() or bench.engine.join_once():
        pass
    bench.queries(LATE)
    bench.clicks(clicked(3, 0, Q))
    while bench.engine.join_once() or other.join_once():
        pass
    bench.clock.now += 60
    stopped(monkeypatch, point, other.retry_once)
    bench.clock.now += 60
    other = bench.replica("other")
    while bench.engine.retry_once() or other.retry_once():
        pass
    assert pairs(bench) == Counter([of(1), of(3), of(9, LATE)])
    assert found(verify(bench)) == {}


def test_given_up_and_sent_again(make: Make) -> None:
    """One whose query never came is claimed as such: its repeat is one, and redriving joins it once."""
    bench = new(make, clicked(9, 9, LATE), retry={"max_attempts": 1, "max_age": "1s"})
    bench.join()
    assert bench.retry(60) == {"events_in": 1, "unjoinable": 1}
    later(bench, 3600)
    bench.clicks(clicked(9, 10, LATE))
    bench.queries(LATE)
    assert bench.join() == {"primary_in": 1, "events_in": 1, "repeats": 1}
    assert pairs(bench) == Counter()
    bench.engine.redrive()
    assert bench.retry(60) == {"events_in": 1, "joined": 1}
    assert pairs(bench) == Counter([of(9, LATE)])
    assert bench.rows("unjoinable") == []
    assert found(verify(bench)) == {}
