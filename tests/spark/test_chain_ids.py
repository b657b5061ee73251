"""Clicks known by their id alone, joined: one pipeline publishes each id once, the next one joins that output.

So a click with a random id that is sent twice, an hour apart, is joined once, whatever time each copy gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.sampled import FULL
from tests.spark.bench import Bench, query
from tests.spark.hand import found, stopped, verify
from tests.spark.test_stream import event
from tests.spark.test_stream_ids import later, new

Make = Callable[..., Bench]
Q, LATE = query("q"), query("late", 1)
SOURCE = {"kind": "pipeline", "name": "bench", "output": "deduplicated"}


def clicked(number: int, at: int, of: dict[str, Any]) -> dict[str, Any]:
    """A click with a random id, which names its query; `at`: its own time, of which each copy may have another."""
    return event(number, at, of=of["event_id"])


def pipelines(make: Make, *first: dict[str, Any]) -> tuple[Bench, Bench]:
    """One of ids, and one that joins what it publishes; an event's time is when its id was first seen."""
    ids = new(make, *first)
    foreign = {"source": SOURCE, "event_id": "event_id", "event_time": "event_time", "primary_id": "of"}
    return ids, make(pipeline="shop", lake=ids.pipeline.lake, foreign=foreign)


def joined(ids: Bench) -> Counter[tuple[str, str]]:
    """Pairs that the second has joined, and how often each is there."""
    rows = DeltaTable(str(ids.disk.parent / "shop/joined")).to_pyarrow_table(columns=["event_id", "primary_id"])
    return Counter((row["event_id"], row["primary_id"]) for row in rows.to_pylist())


def test_a_click_that_is_sent_again_later_is_joined_once(make: Make) -> None:
    ids, shop = pipelines(make, *(clicked(number, number, Q) for number in range(5)), clicked(9, 9, LATE))
    shop.queries(Q)
    assert ids.join()["joined"] == 6
    assert shop.join() == {"primary_in": 1, "events_in": 6, "joined": 5, "pending": 1}
    later(ids, 3600)
    shop.clock.now += 3600
    ids.clicks(*(clicked(number, 1800 + number, Q) for number in range(3, 8)), clicked(9, 1900, LATE))
    assert ids.join() == {"events_in": 6, "joined": 3, "repeats": 3}
    shop.queries(LATE)
    assert shop.join() == {"primary_in": 1, "events_in": 3, "joined": 3}
    assert shop.retry(10) == {"events_in": 1, "joined": 1}
    pairs = [(event(number)["messageId"], Q["event_id"]) for number in range(8)]
    assert joined(ids) == Counter([*pairs, (event(9)["messageId"], LATE["event_id"])])
    assert found(verify(shop)) == {}
    assert found(verify(ids)) == {}


@pytest.mark.parametrize("point", ("landed", "claimed", "published") if FULL else ("claimed",))
def test_whatever_crashes(make: Make, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Both crash at one step, and the same clicks come again: each is joined once."""
    ids, shop = pipelines(make, *(clicked(number, number, Q) for number in range(5)))
    shop.queries(Q)
    stopped(monkeypatch, point, ids.engine.join_once)
    later(ids, 3600)
    ids.clicks(*(clicked(number, 1800, Q) for number in range(5)))
    while ids.engine.join_once():
        pass
    stopped(monkeypatch, point, shop.engine.join_once)
    shop.engine = shop.replica("main")
    while shop.engine.join_once():
        pass
    assert joined(ids) == Counter((event(number)["messageId"], Q["event_id"]) for number in range(5))
