"""A lake without Spark, with batches written as a join writes them: claims, then output, then the journal."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clickjoin.config import Pipeline
from clickjoin.dispatcher.journal import Journal
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake_setup import initialise
from clickjoin.model.batch_plan import BatchPlan, TableSplit
from clickjoin.model.txn import Txn

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def pipeline(folder: Path, name: str = "p", lake: str = "") -> Pipeline:
    """A pipeline with its lake at `folder/lake` or elsewhere, and logs at `folder/logs`."""
    side = {"source": {"kind": "files", "path": f"{folder}/logs/q/*.jsonl"}, "event_id": "id", "event_time": "embedded"}
    other = {"source": {"kind": "files", "path": f"{folder}/logs/c/*.jsonl"}}
    foreign = {**side, **other, "primary_id": "q", "primary_time": "embedded"}
    return Pipeline.model_validate(
        {
            "pipeline": name,
            "engine": "arrow",
            "lake": lake or f"{folder}/lake",
            "primary": side,
            "foreign": foreign,
            "registry": {"shards": 1},
        }
    )


class Batches:
    """Writes batches of a lake. Ids are `e<n>`, n the batch's number."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        initialise(pipeline)
        self.delta = ArrowTables(pipeline.root)
        self.journal = Journal(self.delta, "p", "main", "join")

    def run(self, first: int, last: int) -> None:
        """Run batches, each to its end."""
        for number in range(first, last + 1):
            self.plan(number)
            self.claim(number)
            self.publish(number)
            self.journal.settle(number, {}, NOON)

    def plan(self, number: int) -> None:
        """Plan one."""
        self.journal.plan(BatchPlan("p", "main", "join", number, int(NOON.timestamp() * 1e6), snapshot=True), NOON)

    def fresh(self, number: int) -> BatchPlan:
        """The plan of one that is planned just now."""
        return BatchPlan("p", "main", "join", number, time.time_ns() // 1000, snapshot=True)

    def plan_retry(self, number: int) -> None:
        """Plan a retry of what waits now."""
        part = TableSplit("pending", self.delta.version("pending"), int(NOON.timestamp() * 1e6), 100)
        plan = BatchPlan("p", "main", "retry", number, int(NOON.timestamp() * 1e6), table=part, snapshot=True)
        Journal(self.delta, "p", "main", "retry").plan(plan, NOON)

    def claim(self, number: int) -> None:
        """Claim its event."""
        row = {**_event(number), "shard": 0, "token": f"p/main/join/{number}", "outcome": "joined"}
        self.delta.append("registry", [row], Txn("p/main/join", number))

    def publish(self, number: int) -> None:
        """Publish its event."""
        row = {**_event(number), "primary_id": "q", "primary_time": NOON, "token": f"p/main/join/{number}"}
        self.delta.append(
            "joined",
            [row | {"event_date": NOON.date(), "replica": "main", "published_at": NOON}],
            Txn("p/main/join", number),
        )

    def wait(self, number: int) -> None:
        """An event that waits."""
        row = {**_event(number), "shard": 0, "state": "waiting", "batch": number, "replica": "main", "round": 0}
        self.delta.append("pending", [row])


def _event(number: int) -> dict[str, Any]:
    return {"event_id": f"e{number}", "event_time": NOON, "bucket": "2026-03-01T1200Z"}


def ids(root: str | Path, name: str) -> list[str]:
    """Ids in a table, sorted."""
    return sorted(ArrowTables(str(root)).read(name, columns=["event_id"])["event_id"].to_pylist())


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(place.relative_to(folder)): place.read_bytes() for place in folder.rglob("*") if place.is_file()}
