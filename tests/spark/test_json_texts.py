"""Records in the text of others: joined once, and known to verify, on either engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.bench import Bench, click, crash_at, query
from tests.spark.hand import Hand, found, verify

FIELDS: dict[str, Any] = {
    "primary": {"source": {"kind": "files", "path": "primary/*", "json": "Message", "records": "Message.Records"}},
    "foreign": {
        "source": {"kind": "files", "path": "foreign/*", "json": ["Message"]},
        "where": {"Type": "Notification"},
        "event_id": "Message.event_id",
        "primary_id": "Message.query_id",
    },
    "output": {"columns": {"rank": {"from": "foreign.Message.rank", "type": "INT"}}},
}
QUERIES = [query(f"q{n}", n) for n in range(4)]
CUT = '{"event_id": "cut'


def sent(message: Any, kind: str = "Notification") -> dict[str, Any]:
    """As a notification carries it."""
    return {"Type": kind, "Message": message if isinstance(message, str) else json.dumps(message)}


def write(bench: Bench) -> None:
    """Two batches of queries, four clicks, a confirmation, and a click that is cut."""
    bench.queries(sent({"Records": QUERIES[:2]}), sent({"Records": QUERIES[2:]}))
    clicks = [sent(click(f"c{n}", 9 + n, QUERIES[n], rank=n)) for n in range(4)]
    bench.clicks(*clicks, sent("You have chosen", "SubscriptionConfirmation"), sent(CUT))


@pytest.mark.parametrize("tasks", [False, True])
def test_all_of_it_lands_once(make: Callable[..., Bench], tasks: bool) -> None:
    """Read by the driver, and by tasks."""
    bench = make(**FIELDS | ({"batch": {"driver_bytes": "0B"}} if tasks else {}))
    write(bench)
    settled = bench.engine.join_once()
    assert settled
    expected = {"primary_in": 4, "events_in": 4, "joined": 4, "quarantined": 1, "passed_over": 1}
    assert {name: settled.metrics[name] for name in expected} == expected
    assert bench.rows("joined", "rank") == [(0,), (1,), (2,), (3,)]
    ((reason, raw),) = bench.rows("quarantine", "reason", "raw")
    assert (reason, bytes(raw)) == ("broken-json", json.dumps(sent(CUT)).encode() + b"\n")
    assert bench.accounts()["agree"]
    assert not found(verify(bench))


def test_a_crash_and_a_row_that_is_gone(make: Callable[..., Bench]) -> None:
    bench = make(**FIELDS)
    write(bench)
    with crash_at(bench.engine.lake, "foreign", after=False):
        bench.join()
    bench.engine = bench.replica("main")
    assert bench.engine.join_once()
    Hand(bench).delete("foreign", "c1")
    assert found(verify(bench))["unread"] == 1
    verify(bench, repair=True)
    assert bench.hosts("joined") == ["c0", "c1", "c2", "c3"]
    assert not found(verify(bench))
