"""The dispatcher: decides what the next batch reads, and writes that down before any work (Photon, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import SNAPSHOT_EVERY, Journal, JournalState, fold
from clickjoin.dispatcher.plan import STREAMS, BatchPlan, TableSlice
from clickjoin.events import MICROS
from clickjoin.sources.base import Budget, Position, Source, SourcePlan

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake import SmallTables

Clock = Callable[[], float]


def join_plan(
    pipeline: str,
    replica: str,
    number: int,
    now: float,
    found: Mapping[str, SourcePlan],
    known: Mapping[str, Mapping[str, Position]],
) -> BatchPlan | None:
    """The join batch that takes up what the sources found; None where there is nothing to do."""
    if not any(part.slices or part.positions for part in found.values()):
        return None
    positions = {stream: part.positions for stream, part in found.items() if part.positions}
    snapshot = (number - 1) % SNAPSHOT_EVERY == 0
    if snapshot:
        whole = {stream: dict(items) for stream, items in known.items()}
        fold(whole, dict(positions))
        positions = {stream: tuple(items.values()) for stream, items in whole.items()}
    return BatchPlan(
        pipeline=pipeline,
        replica=replica,
        sequence="join",
        number=number,
        planned=int(now * MICROS),
        slices={stream: part.slices for stream, part in found.items() if part.slices},
        positions=positions,
        problems=tuple(problem for part in found.values() for problem in part.problems),
        backlog_events=sum(part.backlog_events for part in found.values()),
        backlog_bytes=sum(part.backlog_bytes for part in found.values()),
        snapshot=snapshot,
    )


class Dispatcher:
    """Hands out batches of one sequence, each until it is settled. Keeps the journal's state between batches."""

    def __init__(
        self,
        pipeline: Pipeline,
        small: SmallTables,
        replica: str,
        sequence: str,
        sources: Mapping[str, Source] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.replica = replica
        self.sequence = sequence
        self.journal = Journal(small, pipeline.pipeline, replica, sequence)
        self.found: dict[str, SourcePlan] = {}
        self._sources = sources or {}
        self._clock = clock or (lambda: datetime.now(UTC).timestamp())
        self._state: JournalState | None = None

    def unsettled(self) -> BatchPlan | None:
        """The batch that was planned and is not settled: it goes first, with the slices that it had."""
        if self._state is None or self.journal.planned() != self._state.last or self._state.unsettled:
            self._state = self.journal.load()
        return self._state.unsettled

    def next_join(self) -> BatchPlan | None:
        """The next batch of new records, planned and written down; None where the sources hold nothing new."""
        waiting = self.unsettled()
        if waiting:
            return waiting
        state = self._known()
        budget = Budget(self.pipeline.batch.max_events, self.pipeline.batch.max_bytes)
        self.found = {stream: self._sources[stream].plan(state.positions.get(stream, {}), budget) for stream in STREAMS}
        return self._write(
            join_plan(self.pipeline.pipeline, self.replica, state.last + 1, self._clock(), self.found, state.positions)
        )

    def next_of_table(self, part: TableSlice) -> BatchPlan | None:
        """The next batch of rows of one of the pipeline's own tables, planned and written down."""
        waiting = self.unsettled()
        if waiting:
            return waiting
        return self._write(
            BatchPlan(
                pipeline=self.pipeline.pipeline,
                replica=self.replica,
                sequence=self.sequence,
                number=self._known().last + 1,
                planned=int(self._clock() * MICROS),
                pending=part,
                snapshot=True,
            )
        )

    def _known(self) -> JournalState:
        if self._state is None:
            self._state = self.journal.load()
        return self._state

    def _write(self, plan: BatchPlan | None) -> BatchPlan | None:
        if plan is None:
            return None
        if not self.journal.plan(plan, plan.planned_at):
            self._state = None  # another process planned this number first: take up its plan
            return self.unsettled()
        state = self._known()
        fold(state.positions, dict(plan.positions))
        self._state = replace(state, last=plan.number, unsettled=plan)
        return plan

    def settled(self, plan: BatchPlan, lost: Mapping[str, list[dict[str, object]]]) -> None:
        """Note that a batch is done."""
        self.journal.settle(plan.number, dict(lost), datetime.fromtimestamp(self._clock(), UTC))
        clean = self._state and self._state.last == plan.number and not lost
        self._state = replace(self._state, unsettled=None) if clean and self._state else None
