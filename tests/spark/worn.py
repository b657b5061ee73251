"""A lake that has been through everything: every kind of file, record and outcome, two replicas, a redrive."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from clickjoin.registry.boundary import advance
from tests.spark.bench import NOON, Bench, click, event_id, query
from tests.unit.sources_bench import age

Q, LATE, NEVER = query("q"), query("late", 5), query("never", 9)
JOINED = "acdefghijk"


def worn(make: Any) -> Bench:
    """Clicks a and c to k are joined, b is filtered, u unjoinable, w waits, r was redriven and joined, x is expired."""
    bench: Bench = make(
        adapter="clickjoin.examples.adapters:TopPositions",
        retry={"max_attempts": 2, "max_age": "5s", "first_delay": "10s", "backoff": 1},
    )
    advance(bench.engine.lake.delta, 4, datetime.fromtimestamp(NOON, UTC) - timedelta(hours=1), datetime.now(UTC))
    _logs(bench)
    bench.join()
    bench.retry(after=11)  # u and r are given up
    assert bench.places()["unjoinable"] == ["r", "u"]
    bench.queries(LATE)
    bench.join()
    assert bench.engine.redrive() == 2
    bench.retry(after=1)  # r is joined, u waits once more
    west = bench.replica("west")
    while west.join_once():
        pass
    bench.retry(after=12)  # u is given up again, and waits at the other replica still
    bench.clicks(top("w", 40, NEVER), "[]")
    bench.join()
    assert west.join_once()
    bench.clock.now += 10
    places = {"joined": [*JOINED, "r"], "filtered": ["b"], "unjoinable": ["u"], "expired": ["x"] * 2}
    assert bench.places() == places | {"pending": ["u", "w", "w"]}
    return bench


def top(host: str, seconds: float, of: Any) -> dict[str, Any]:
    """A click on the first position."""
    return click(host, seconds, of, position=1)


def _logs(bench: Bench) -> None:
    primary, foreign = bench.folder / "primary", bench.folder / "foreign"
    (primary / "1.csv").write_text(f"event_id,shown\r\n{Q['event_id']},1\r\n\r\n{event_id('p', 1)},2\r\n")
    rows = [top(host, at + 1, Q) for at, host in enumerate("adefhijk")]
    rows += [click("b", 20, Q, position=9), top("u", 21, NEVER), top("r", 22, LATE), top("a", 1, Q), top("x", -7200, Q)]
    bench.clicks("", "{broken", *rows, "", "   ", '{"event_id": 1.5}')
    (foreign / "2.csv").write_text(f"event_id,query_id,position\n{event_id('c', 30)},{Q['event_id']},2\nshort\n")
    packed = foreign / "3.jsonl.gz"
    lines = (json.dumps(top("g", 31, Q)), "", json.dumps(top("a", 1, Q)))
    packed.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n\n"))
    age(packed, 60)
