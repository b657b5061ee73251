"""The dispatcher: decides what the next batch reads, and writes that down before any work (Photon, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import Journal, JournalState, Lost, fold, read_until
from clickjoin.dispatcher.planner import Planner, Proposal
from clickjoin.dispatcher.watermarks import newer
from clickjoin.model.batch_plan import BatchPlan, TableSplit
from clickjoin.model.ids import MICROS
from clickjoin.model.split import SourcePlan, Split
from clickjoin.sources.port import Source

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.tables_port import Tables

Clock = Callable[[], float]


class Dispatcher:
    """Hands out batches of one sequence, each until it is settled. Keeps the journal's state between batches."""

    def __init__(
        self,
        pipeline: Pipeline,
        delta: Tables,
        replica: str,
        sequence: str,
        sources: Mapping[str, Source] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.replica = replica
        self.sequence = sequence
        self.journal = Journal(delta, pipeline.pipeline, replica, sequence)
        self.found: dict[str, SourcePlan] = {}
        self._sources = sources or {}
        self._clock = clock or (lambda: datetime.now(UTC).timestamp())
        self._planner = Planner(pipeline, replica, self._sources, self._clock)
        self._state: JournalState | None = None
        self._planned = 0.0  # when this process last wrote a plan; seconds since 1970

    def unsettled(self) -> BatchPlan | None:
        """The batch that was planned and is not settled: it goes first, with the splits that it had."""
        if self._state is None or self.journal.planned() != self._state.last or self._state.unsettled:
            self._state = self.journal.load()
            if self._state.unsettled:
                self.journal.flush()  # or a power cut could keep what the batch commits, and not its plan
        return self._state.unsettled

    def next_join(self, ahead: Proposal | None = None) -> BatchPlan | None:
        """The next batch of new records, planned and written down; None where the sources hold nothing new.

        `ahead`: what was proposed while the batch before was under way; it counts if all is still as it was then.
        """
        waiting = self.unsettled()
        if waiting:
            return waiting
        state = self.known()
        if ahead is None or not ahead.follows(state):
            ahead = self.propose(state, state.newest)
        self.found = dict(ahead.found)
        return self.write(ahead.plan)

    def propose(self, state: JournalState, newest: Mapping[str, int]) -> Proposal:
        """What the batch after those of a state is to read; nothing is written down. `newest`: see JournalState."""
        return self._planner.propose(state, newest, self._planned)

    def next_of_table(self, part: TableSplit) -> BatchPlan | None:
        """The next batch of rows of one of the pipeline's own tables, planned and written down."""
        waiting = self.unsettled()
        if waiting:
            return waiting
        return self.write(
            BatchPlan(
                pipeline=self.pipeline.pipeline,
                replica=self.replica,
                sequence=self.sequence,
                number=self.known().last + 1,
                planned=int(self._clock() * MICROS),
                table=part,
                snapshot=True,
            )
        )

    def age(self, plan: BatchPlan) -> float:
        """Seconds since a plan was made."""
        return self._clock() - plan.planned / MICROS

    def known(self) -> JournalState:
        """The journal's state as of the last look; see `unsettled`."""
        if self._state is None:
            self._state = self.journal.load()
        return self._state

    def write(self, plan: BatchPlan | None) -> BatchPlan | None:
        """Write a plan down, and return it; or the one of its number that another process has written first."""
        if plan is None:
            return None
        at = datetime.fromtimestamp(self._clock(), UTC)  # of one that was proposed ahead later than it was made
        if not self.journal.plan(plan, at):
            self._state = None  # another process planned this number first: take up its plan
            return self.unsettled()
        state, self._planned = self.known(), self._clock()
        fold(state.offsets, plan.offsets)
        self._state = replace(state, last=plan.number, unsettled=plan, watermarks=plan.watermarks)
        return plan

    def settled(
        self, plan: BatchPlan, lost: Mapping[str, Sequence[Split]], landed: Mapping[str, int] | None = None
    ) -> None:
        """Note that a batch is done.

        `lost`: its splits that could not be read any more; `landed`: the newest event time (microseconds) of its
        records; by stream.
        """
        state = self.known()
        held, newest = self.journal.seen(state.held), newer(state.newest, landed or {})
        at = datetime.fromtimestamp(self._clock(), UTC)
        self.journal.settle(plan.number, self._rewound(lost), at, held, newest)
        clean = state.last == plan.number and not lost
        read = read_until([plan]) or state.read_until
        done = replace(state, unsettled=None, held=held, newest=newest, passed=plan.watermarks, read_until=read)
        self._state = done if clean else None

    def _rewound(self, lost: Mapping[str, Sequence[Split]]) -> Lost:
        """What the offsets of partitions go back to of which splits were lost: their sources know."""
        known = self.known().offsets
        return {
            stream: {
                split.partition: self._sources[stream].rewind(offset, split) if offset else None
                for split in splits
                for offset in (known.get(stream, {}).get(split.partition),)
            }
            for stream, splits in lost.items()
            if splits
        }
