"""What the sources hold now that a replica has not planned yet: no Spark needed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.journal import JournalReader
from clickjoin.model.names import RAW
from clickjoin.model.split import Budget, SourcePlan
from clickjoin.retry.pending import open_pending
from clickjoin.sources.open import open_source

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader


def backlog(pipeline: Pipeline, delta: DeltaReader, replica: str) -> dict[str, Any]:
    """`backlog_bytes`, `backlog_events` (estimated) and `problems` of all streams, as of now; `inputs`: the first two
    by stream, and `lag` by partition, where a source counts it; and the batch that is planned and not settled.

    A replica of raw logs has none: its backfill reads them to their end, and nobody else knows where they are.
    """
    state = JournalReader(delta, pipeline.pipeline, replica, "join").load()
    whole: dict[str, Any] = {"backlog_events": 0, "backlog_bytes": 0, "problems": [], "inputs": {}}
    whole["unsettled_batch"] = state.unsettled.number if state.unsettled else None
    for item in () if replica.startswith(RAW) else pipeline.inputs:
        source = open_source(item.source, keep=False)
        plan = source.plan(state.offsets.get(item.name, {}), Budget(1, 1))
        found = {
            "backlog_events": plan.backlog_events + sum(split.events for split in plan.splits),
            "backlog_bytes": plan.backlog_bytes + sum(split.bytes for split in plan.splits),
        }
        whole["inputs"][item.name] = found | ({"lag": _lag(plan)} if plan.lag else {})
        whole |= {name: whole[name] + count for name, count in found.items()}
        whole["problems"] += [asdict(problem) for problem in plan.problems]
    return whole


def _lag(plan: SourcePlan) -> dict[str, int]:
    """How many records of each partition are not planned yet, those of this look among them."""
    looked = {split.path: split.events for split in plan.splits}
    return {path: left + looked.get(path, 0) for path, left in sorted(plan.lag.items())}


def waiting(delta: DeltaReader) -> dict[str, dict[str, Any]]:
    """By replica: `pending`, how many events wait for their primary, and `oldest_pending`, the least of their times."""
    found = open_pending(delta).group_by("replica").aggregate([("event_time", "count"), ("event_time", "min")])
    return {
        row["replica"]: {"pending": row["event_time_count"], "oldest_pending": row["event_time_min"].isoformat()}
        for row in found.to_pylist()
    }
