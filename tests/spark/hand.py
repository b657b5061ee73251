"""Changing tables by hand, behind the program's back, and looking at what a verification says of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from clickjoin.engine import Engine
from clickjoin.model import failpoint
from clickjoin.verification.findings import Report
from clickjoin.verification.verify import Verifier, Wanted
from tests.spark.bench import NOON, Bench, event_id


def verify(bench: Bench, replica: str = "main", **wanted: Any) -> Report:
    """As the job does: it looks at tables that do not fit together, which every other program refuses."""
    said: list[str] = []
    engine = Engine(bench.spark, bench.pipeline, replica, clock=bench.clock, agreeing=False)
    report = Verifier(engine, said.append, patience=0).verify(Wanted(**wanted))
    assert said[-1].startswith(report.verdict)
    return report


def found(report: Report) -> dict[str, int]:
    """Faults by kind."""
    return {count.kind: count.count for count in report.counts if count.count and count.fault}


def hosts(report: Report) -> dict[str, list[str]]:
    """Whose they are, of faults of events."""
    return {
        count.kind: sorted(sample["event_id"].split(":")[0] for sample in count.samples)
        for count in report.counts
        if count.samples and "event_id" in count.samples[0]
    }


class Hand:
    """Changes tables behind the program's back."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(self.bench.engine.lake.delta.path(name))

    def where(self, host: str) -> str:
        return f"event_id LIKE '{host}:%'"

    def delete(self, name: str, *hosts: str, where: str = "TRUE") -> None:
        for host in hosts:
            self.table(name).delete(f"{self.where(host)} AND {where}")

    def rows(self, name: str, host: str) -> list[dict[str, Any]]:
        table = self.bench.engine.lake.delta.read(name)
        return [row for row in table.to_pylist() if row["event_id"].startswith(f"{host}:")]

    def add(self, name: str, row: dict[str, Any], **changes: Any) -> None:
        schema = self.bench.engine.lake.delta.read(name).schema
        write_deltalake(self.table(name), pa.Table.from_pylist([row | changes], schema=schema), mode="append")

    def change(self, name: str, host: str, **changes: str) -> None:
        self.table(name).update(
            predicate=self.where(host), updates={key: f"'{value}'" for key, value in changes.items()}
        )


def damage(hand: Hand) -> None:
    """One fault of each kind at least."""
    hand.delete("joined", "g")  # claim_without_output
    hand.add("registry", hand.rows("registry", "a")[0], **name("w", 40), token="bench/main/join/77")  # the same
    hand.delete("registry", "c", "b")  # output_without_claim
    for table in ("registry", "unjoinable", "pending"):
        hand.delete(table, "u")  # lost
    hand.add("joined", hand.rows("joined", "d")[0])  # doubled, the very same row
    hand.add("joined", hand.rows("joined", "e")[0], token="bench/west/join/1")  # doubled by another
    hand.add("filtered", hand.rows("filtered", "b")[0], **name("f", 4), token="bench/main/join/1")  # two_places
    hand.change("joined", "h", token="bench/main/join/8")  # wrong_token
    hand.change("registry", "i", outcome="filtered")  # wrong_token: the claim names another table
    hand.add("registry", hand.rows("registry", "j")[0])  # doubled_claim
    hand.delete("foreign", "k")  # unknown_output, and unread, by both replicas


def name(host: str, seconds: float) -> dict[str, Any]:
    """Identity of an event."""
    return {"event_id": event_id(host, seconds), "event_time": datetime.fromtimestamp(NOON + seconds, UTC)}


FAULTS = {
    "claim_without_output": ["g", "w"],
    "output_without_claim": ["b", "c"],
    "lost": ["u"],
    "doubled": ["d", "e"],
    "two_places": ["f"],
    "wrong_token": ["h", "i"],
    "doubled_claim": ["j"],
    "unknown_output": ["k"],
}


def stopped(monkeypatch: pytest.MonkeyPatch, point: str, work: Callable[[], object]) -> None:
    """Do something, and stop as a crash would where it passes a point."""

    def reach(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(failpoint, "reach", reach)
        with pytest.raises(KeyboardInterrupt):
            work()
