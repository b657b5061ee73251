"""The dispatcher: decides what the next batch reads, and writes that down before any work (Photon, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import SNAPSHOT_EVERY, Journal, JournalState, fold
from clickjoin.dispatcher.plan import STREAMS, BatchPlan, TableSlice
from clickjoin.events import MICROS
from clickjoin.sources.base import Budget, Position, Source, SourcePlan

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake import SmallTables

Clock = Callable[[], float]
_LEAST_SHARE = 20


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


def abreast(budget: Budget, primary: SourcePlan, foreign: SourcePlan) -> Budget | None:
    """What may be read of the foreign stream so that it does not run ahead of a backlog of primary events.

    The same share of its own backlog, and a twentieth of a batch at least, for the files of a backlog need not be those
    that the foreign events are waiting for. None where it is not ahead: clicks that come before their queries would all
    go to `pending`, and from there cost several times as much.
    """
    asked, taken = (sum(piece.events for piece in plan.slices) for plan in (primary, foreign))
    if not primary.backlog_events or not taken:
        return None
    share = asked / (asked + primary.backlog_events)
    most = max(ceil(share * (taken + foreign.backlog_events)), budget.max_events // _LEAST_SHARE, 1)
    return replace(budget, max_events=most) if most < taken else None


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
        self.found = {stream: self._look(stream, budget) for stream in STREAMS}
        less = abreast(budget, self.found["primary"], self.found["foreign"])
        if less:
            self.found["foreign"] = self._look("foreign", less)
        return self._write(
            join_plan(self.pipeline.pipeline, self.replica, state.last + 1, self._clock(), self.found, state.positions)
        )

    def _look(self, stream: str, budget: Budget) -> SourcePlan:
        return self._sources[stream].plan(self._known().positions.get(stream, {}), budget)

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
        state = self._known()
        held = self.journal.seen(state.held)
        self.journal.settle(plan.number, dict(lost), datetime.fromtimestamp(self._clock(), UTC), held)
        clean = state.last == plan.number and not lost
        self._state = replace(state, unsettled=None, held=held) if clean else None
