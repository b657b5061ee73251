"""What settled batches had planned to read, from the journal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.split import PlannedSplit

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.model.span import Span

Batch = tuple[str, int]  # replica, number
_CHUNK = 2000  # batches: the journal keeps many days of them, a file or two each


def planned_splits(
    delta: DeltaReader, settled: Mapping[tuple[str, str], int], span: Span, also: Iterable[Batch]
) -> list[PlannedSplit]:
    """What join batches have read that were planned within a range, and these others."""
    wanted = set(also)
    found: list[PlannedSplit] = []
    for (replica, sequence), last in sorted(settled.items()):
        if sequence != "join":
            continue
        rows = _journal(delta, replica, last, span.low, {number for name, number in wanted if name == replica})
        lost = {row["batch"]: json.loads(row["plan"])["lost"] for row in rows if row["state"] == "settled"}
        for row in rows:
            inside = span.low <= row["at"] < span.high or (replica, row["batch"]) in wanted
            if row["state"] == "planned" and inside:
                found += _of_plan(BatchPlan.from_json(row["plan"]), lost.get(row["batch"], {}))
    return sorted(found, key=lambda one: (one.replica, one.batch, one.stream, one.split.partition))


def _journal(delta: DeltaReader, replica: str, last: int, low: datetime, also: set[int]) -> list[dict[str, Any]]:
    """Rows of join batches, newest first, back to a time of planning; beyond it only as far as others are wanted."""
    found: list[dict[str, Any]] = []
    past = False
    while last > 0 and not (past and not any(number <= last for number in also)):
        first = max(last - _CHUNK, 0)
        if not past or any(first < number <= last for number in also):
            key = [("replica", "=", replica), ("sequence", "=", "join"), ("batch", ">", first), ("batch", "<=", last)]
            rows = delta.read("journal", filters=key, columns=["batch", "state", "at", "plan"]).to_pylist()
            found += rows
            past = past or not any(row["at"] >= low for row in rows)
        last = first
    return found


def _of_plan(plan: BatchPlan, lost: Mapping[str, Mapping[str, Any]]) -> list[PlannedSplit]:
    return [
        PlannedSplit(plan.replica, plan.number, stream, plan.planned, split, split.partition in lost.get(stream, ()))
        for stream, splits in plan.splits.items()
        for split in splits
    ]
