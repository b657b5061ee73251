"""Verification: quiet on a healthy lake, whatever it went through; every fault made by hand is found and counted."""

from __future__ import annotations

from typing import Any

from clickjoin.verification.findings import Report
from clickjoin.verification.verify import Verifier, Wanted
from tests.spark.bench import Bench, click, query

Q, LATE = query("q"), query("late", 5)


def verify(bench: Bench, **wanted: Any) -> Report:
    said: list[str] = []
    return Verifier(bench.replica("main"), said.append, patience=0).verify(Wanted(**wanted))


def found(report: Report) -> dict[str, int]:
    return {count.kind: count.count for count in report.counts if count.count}


def test_quick(make: Any) -> None:
    bench: Bench = make()
    bench.queries(Q)
    bench.clicks(click("a", 1, Q), click("b", 2, Q), click("c", 3, LATE), click("a", 1, Q))
    bench.join()
    report = verify(bench)
    assert found(report) == {}
    assert report.ok
    bench.engine.lake.small.open("joined").delete(f"event_id = '{click('a', 1, Q)['event_id']}'")
    bench.engine.lake.small.open("registry").delete(f"event_id = '{click('b', 2, Q)['event_id']}'")
    bench.engine.lake.small.open("pending").delete()
    report = verify(bench)
    assert found(report) == {"claim_without_output": 1, "lost": 1, "output_without_claim": 1}
    report = verify(bench, repair=True)
    print(report)
    assert report.ok
    assert bench.retry() == {"events_in": 2, "pending": 1, "joined": 1}
    assert found(verify(bench)) == {}
