"""Two replicas on the same logs at once: who comes second leaves to the first what the first has planned."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from clickjoin.jobs.checking import verify
from clickjoin.model import failpoint
from tests.spark.bench import Bench, click, counts, query
from tests.spark.hand import Hand

Q = query("q")


def test_second_waits_for_the_claims_of_the_first(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """West plans a second after east, and asks the registry while east has looked up and not claimed yet."""
    bench = make()
    bench.queries(Q)
    bench.clicks(*(click(f"c{n}", n, Q) for n in range(20)))
    east, west = (bench.replica(name, bench.spark.newSession()) for name in ("east", "west"))
    planned, waits, found = threading.Event(), threading.Event(), dict[str, Any]()

    def reach(name: str) -> None:
        if threading.current_thread().name == "east" and name == "looked-up":
            planned.set()
            assert waits.wait(120)

    def pause(seconds: float) -> None:
        waits.set()
        threading.Event().wait(seconds)

    monkeypatch.setattr(failpoint, "reach", reach)
    west.lake.sleep = pause
    first = threading.Thread(target=lambda: found.update(east=east.join_once()), name="east")
    first.start()
    assert planned.wait(120)
    bench.clock.now += 1
    found["west"] = west.join_once()
    first.join(120)
    assert counts(found["east"].metrics) == {"primary_in": 1, "events_in": 20, "joined": 20}
    assert counts(found["west"].metrics) == {"primary_in": 1, "events_in": 20, "repeats": 20}
    assert len(bench.hosts("joined")) == 20


def test_first_is_dead_and_the_second_goes_on(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make()
    bench.queries(Q)
    bench.clicks(click("a", 1, Q))
    east, west = bench.replica("east"), bench.replica("west")

    def crash(name: str) -> None:
        if name == "looked-up":
            raise KeyboardInterrupt

    monkeypatch.setattr(failpoint, "reach", crash)
    with pytest.raises(KeyboardInterrupt):
        east.join_once()
    monkeypatch.undo()
    bench.clock.now += 1
    slept: list[float] = []
    west.lake.sleep = slept.append
    assert west.join_once()
    assert bench.hosts("joined") == ["a"]
    assert 0 < sum(slept) <= 5.1
    bench.clock.now += 60
    slept.clear()
    bench.clicks(click("b", 2, Q))
    assert west.join_once()
    assert slept == []
    bench.engine = bench.replica("east")
    assert bench.join()["repeats"] == 1
    assert bench.join()["repeats"] == 1
    assert bench.hosts("joined") == ["a", "b"]


def test_what_a_repair_dispatches_again_is_joined_by_a_replica_that_runs(make: Callable[..., Bench]) -> None:
    """`verify --repair` says nothing of a replica, and nobody runs one of the name that it goes by then."""
    bench = make()
    bench.queries(Q)
    bench.clicks(click("a", 1, Q), click("b", 2, Q))
    for name in ("east", "west"):
        assert bench.replica(name).join_once()
    Hand(bench).delete("joined", "a")
    said: list[str] = []
    repaired = verify(bench.spark, bench.pipeline, "main", said.append, since="2026-03-01T00:00Z", repair=True)
    assert repaired["repaired"] == {"claim_without_output": 1}
    assert [line for line in said if "replica main has never planned a batch" in line]
    bench.clock.now = time.time() + 10  # by the machine's clock, which the job goes by, it is that late
    for name in ("east", "west"):
        bench.replica(name).retry_once()
    assert [row[0].split(":")[0] for row in bench.rows("joined", "event_id")] == ["a", "b"]
    assert {row[0] for row in bench.rows("pending", "replica")} <= {"east", "west"}
