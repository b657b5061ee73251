"""What the sources hold now that a replica has not planned yet: no Spark needed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.journal import JournalReader
from clickjoin.model.replica import RAW
from clickjoin.model.split import Budget
from clickjoin.sources.open import open_source

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader


def backlog(pipeline: Pipeline, delta: DeltaReader, replica: str) -> dict[str, Any]:
    """`backlog_bytes`, `backlog_events` (estimated) and `problems` of all streams, as of now; and the batch
    that is planned and not settled, if there is one.

    A replica of raw logs has none: its backfill reads them to their end, and nobody else knows where they are.
    """
    state = JournalReader(delta, pipeline.pipeline, replica, "join").load()
    whole: dict[str, Any] = {"backlog_events": 0, "backlog_bytes": 0, "problems": []}
    whole["unsettled_batch"] = state.unsettled.number if state.unsettled else None
    for item in () if replica.startswith(RAW) else pipeline.inputs:
        source = open_source(item.source, keep=False)
        plan = source.plan(state.offsets.get(item.name, {}), Budget(1, 1))
        whole["backlog_events"] += plan.backlog_events + sum(split.events for split in plan.splits)
        whole["backlog_bytes"] += plan.backlog_bytes + sum(split.bytes for split in plan.splits)
        whole["problems"] += [asdict(problem) for problem in plan.problems]
    return whole
