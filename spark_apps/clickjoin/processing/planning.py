"""What the next batch of processing reads, and how far time has come: written down before any work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clickjoin.chain.rests_on import rests_on
from clickjoin.chain.source import OutputSource, Upstream
from clickjoin.config import OfPipeline
from clickjoin.config.one_stream import output_name
from clickjoin.dispatcher.dispatcher import Dispatcher
from clickjoin.dispatcher.journal import JournalState, fold
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import MICROS
from clickjoin.model.split import Budget, SourcePlan
from clickjoin.sources.delta.state import newest

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.config.sections import Process
    from clickjoin.engines.tables_port import Tables

REPLICA, SEQUENCE = "main", "process"
STREAM, BEFORE = "output", "before"  # watermarks of a plan: with its events, and that of the plan before


def output_source(pipeline: Pipeline) -> OfPipeline:
    """The pipeline's own output as a source."""
    return OfPipeline.model_validate(
        {"kind": "pipeline", "name": pipeline.pipeline, "lake": pipeline.lake, "output": output_name(pipeline)}
    )


class Planner:
    """Plans batches one after another, each until it is settled: a dispatcher whose only stream is the output."""

    def __init__(self, pipeline: Pipeline, process: Process, tables: Tables, clock: Callable[[], float]) -> None:
        self.dispatcher = Dispatcher(pipeline, tables, REPLICA, SEQUENCE, clock=clock)
        self._pipeline, self._process, self._clock = pipeline, process, clock
        self._upstream = Upstream(pipeline.root)
        self._source = OutputSource(output_source(pipeline), self._upstream, tasks=1)
        self._budget = Budget(pipeline.batch.max_events, pipeline.batch.max_bytes)

    def held_back(self) -> str:
        """What the watermark of the output rests on, or why it is not known, in a sentence."""
        return rests_on(self._pipeline).why

    def next(self, timer: int) -> BatchPlan | None:
        """The next batch; None where there is no new row, and the watermark has not passed `timer` (microseconds)."""
        waiting = self.dispatcher.unsettled()
        if waiting:
            return waiting
        state = self.dispatcher.known()
        found = self._source.plan(state.offsets.get(STREAM, {}), self._budget)
        self._require_same(state, found)
        before = state.watermarks.get(STREAM, 0)
        mark = max(before, self._watermark(state, found))
        if not found.splits and not found.offsets and timer > mark:
            return None
        return self.dispatcher.write(self._plan(state, found, {STREAM: mark, BEFORE: before}))

    def _watermark(self, state: JournalState, found: SourcePlan) -> int:
        if found.watermark is not None:
            return found.watermark
        if not found.backlog_events:
            return 0
        return state.newest.get(STREAM, 0) - int(self._process.catch_up * MICROS)

    def _require_same(self, state: JournalState, found: SourcePlan) -> None:
        """The output only grows; another one in its place holds events again that were counted."""
        known = newest(state.offsets.get(STREAM, {}))
        after = newest({offset.partition: offset for offset in found.offsets})
        why = "; ".join(problem.detail for problem in found.problems)
        if known and self._source.taken_back:  # what is joined again comes again; a join would know it by its ids
            why = f"version {known.read}, which was read, was taken back by a restore"
        elif not (known and after and after.life > known.life):
            return
        raise LakeError(
            f"what was counted of the output is not what lies there now: {why}",
            remedy="Run `clickjoin process --rebuild`: it begins again from the whole output",
        )

    def _plan(self, state: JournalState, found: SourcePlan, marks: dict[str, int]) -> BatchPlan:
        offsets = {stream: dict(items) for stream, items in state.offsets.items()}
        fold(offsets, {STREAM: found.offsets})
        return BatchPlan(
            pipeline=self._pipeline.pipeline, replica=REPLICA, sequence=SEQUENCE, number=state.last + 1,
            planned=int(self._clock() * MICROS), splits={STREAM: found.splits}, problems=found.problems,
            offsets={stream: tuple(items.values()) for stream, items in offsets.items()},
            backlog_events=found.backlog_events, backlog_bytes=found.backlog_bytes, snapshot=True, watermarks=marks,
        )  # fmt: skip

    def settled(self, plan: BatchPlan, newest_event: int) -> None:
        """Note that a batch is done. `newest_event`: time (microseconds) of the newest event that it took in."""
        self.dispatcher.settled(plan, {}, {STREAM: newest_event})
