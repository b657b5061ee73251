"""A log that is gone between plan and landing: on record in quarantine, and read after all when it comes back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sampled import crossed, some
from tests.spark.bench import Bench, click, crash_at, query
from tests.spark.count import agrees
from tests.spark.hand import found, verify

Q = query("q")
BOTH = ("0B", "4MB")  # slices are read by Spark's workers, or by the process itself


def planned_and_gone(make: Any, local: str) -> tuple[Bench, Any]:
    """A batch is planned, then its log of clicks is carried away; returns how to bring it back."""
    bench: Bench = make(batch={"driver_bytes": local})
    bench.queries(Q)
    bench.clicks(click("a", 1, Q), click("b", 2, Q))
    assert bench.engine.join.next_join()
    log, away = bench.folder / "foreign" / "0.jsonl", bench.folder / "away"
    log.rename(away)
    return bench, lambda: away.rename(log)


def comes_back(bench: Bench, bring_back: Any) -> None:
    assert bench.rows("quarantine", "stream", "reason", "offset", "batch") == [("foreign", "source-lost", 0, 1)]
    bring_back()
    assert bench.replica("main").join_once().metrics["joined"] == 2
    assert bench.places() == {"joined": ["a", "b"]}
    assert agrees(bench)


@pytest.mark.parametrize("local", BOTH)
def test_lost_and_found(make: Any, local: str) -> None:
    bench, bring_back = planned_and_gone(make, local)
    assert bench.join() == {"primary_in": 1, "quarantined": 1}
    comes_back(bench, bring_back)


@pytest.mark.parametrize("local", some(BOTH[::-1], 2))
def test_gone_when_only_its_bad_records_had_not_landed(make: Any, local: str) -> None:
    """Which of them were bad nobody knows then: all that was planned is on record as lost, and read when it is back."""
    bench: Bench = make(batch={"driver_bytes": local})
    bench.queries(Q)
    bench.clicks(click("a", 1, Q), "{broken", click("b", 2, Q))
    with crash_at(bench.engine.lake, "quarantine", after=False):
        bench.join()
    log, away = bench.folder / "foreign" / "0.jsonl", bench.folder / "away"
    log.rename(away)
    bench.replica("main").join_once()
    assert bench.rows("quarantine", "stream", "reason", "offset") == [("foreign", "source-lost", 0)]
    away.rename(log)
    assert bench.replica("main").join_once().metrics["quarantined"] == 1
    assert bench.rows("quarantine", "reason") == [("broken-json",), ("source-lost",)]
    assert bench.places() == {"joined": ["a", "b"]}
    assert agrees(bench)
    assert found(verify(bench)) == {}


@pytest.mark.parametrize(("after", "local"), crossed([False, True], BOTH))
def test_a_crash_around_quarantine_forgets_nothing(make: Any, after: bool, local: str) -> None:
    bench, bring_back = planned_and_gone(make, local)
    with crash_at(bench.engine.lake, "quarantine", after=after):
        bench.join()
    assert bench.replica("main").join_once().metrics["primary_in"] == 1
    comes_back(bench, bring_back)
