"""What the sources hold that a replica has not planned yet, looked at now: no Spark needed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.journal import Journal
from clickjoin.dispatcher.plan import STREAMS
from clickjoin.replicas import RAW
from clickjoin.sources.base import Budget
from clickjoin.sources.files import FilesSource

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake import SmallTables


def backlog(pipeline: Pipeline, small: SmallTables, replica: str) -> dict[str, Any]:
    """`backlog_bytes`, `backlog_events` (estimated) and `problems` of both streams, as of now; and the batch
    that is planned and not settled, if there is one.

    A replica of raw logs has none: its backfill reads them to their end, and nobody else knows where they are.
    """
    state = Journal(small, pipeline.pipeline, replica, "join").load()
    positions = state.positions
    whole: dict[str, Any] = {"backlog_events": 0, "backlog_bytes": 0, "problems": []}
    whole["unsettled_batch"] = state.unsettled.number if state.unsettled else None
    for stream in () if replica.startswith(RAW) else STREAMS:
        source = FilesSource((pipeline.primary if stream == "primary" else pipeline.foreign).source, keep=False)
        plan = source.plan(positions.get(stream, {}), Budget(1, 1))
        whole["backlog_events"] += plan.backlog_events + sum(piece.events for piece in plan.slices)
        whole["backlog_bytes"] += plan.backlog_bytes + sum(max(piece.end - piece.start, 0) for piece in plan.slices)
        whole["problems"] += [asdict(problem) for problem in plan.problems]
    return whole
