"""The dispatcher: decides what the next batch reads, and writes that down before any work (Photon, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import LOOK_SECONDS, SNAPSHOT_EVERY, Journal, JournalState, Lost, fold, read_until
from clickjoin.dispatcher.pacing import abreast
from clickjoin.dispatcher.watermarks import newer, stream_watermark, time_passed
from clickjoin.model.batch_plan import BatchPlan, TableSplit
from clickjoin.model.ids import MICROS
from clickjoin.model.split import Budget, SourceOffset, SourcePlan, Split
from clickjoin.sources.port import Source

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake import DeltaTables

Clock = Callable[[], float]


def join_plan(
    pipeline: str,
    replica: str,
    number: int,
    now: float,
    found: Mapping[str, SourcePlan],
    known: Mapping[str, Mapping[str, SourceOffset]],
    watermarks: Mapping[str, int] | None = None,
) -> BatchPlan:
    """The join batch that takes up what the sources found."""
    offsets = {stream: part.offsets for stream, part in found.items() if part.offsets}
    snapshot = (number - 1) % SNAPSHOT_EVERY == 0
    if snapshot:
        whole = {stream: dict(items) for stream, items in known.items()}
        fold(whole, offsets)
        offsets = {stream: tuple(items.values()) for stream, items in whole.items()}
    return BatchPlan(
        pipeline=pipeline,
        replica=replica,
        sequence="join",
        number=number,
        planned=int(now * MICROS),
        splits={stream: part.splits for stream, part in found.items() if part.splits},
        offsets=offsets,
        problems=tuple(problem for part in found.values() for problem in part.problems),
        backlog_events=sum(part.backlog_events for part in found.values()),
        backlog_bytes=sum(part.backlog_bytes for part in found.values()),
        snapshot=snapshot,
        watermarks=watermarks or {},
    )


class Dispatcher:
    """Hands out batches of one sequence, each until it is settled. Keeps the journal's state between batches."""

    def __init__(
        self,
        pipeline: Pipeline,
        delta: DeltaTables,
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
        self._state: JournalState | None = None
        self._planned = 0.0  # when this process last wrote a plan; seconds since 1970

    def unsettled(self) -> BatchPlan | None:
        """The batch that was planned and is not settled: it goes first, with the splits that it had."""
        if self._state is None or self.journal.planned() != self._state.last or self._state.unsettled:
            self._state = self.journal.load()
            if self._state.unsettled:
                self.journal.flush()  # or a power cut could keep what the batch commits, and not its plan
        return self._state.unsettled

    def next_join(self) -> BatchPlan | None:
        """The next batch of new records, planned and written down; None where the sources hold nothing new.

        Where the output is processed by key, or the pipeline's file asks for it, a batch of no records says now and
        then that time has passed.
        """
        waiting = self.unsettled()
        if waiting:
            return waiting
        state = self.known()
        budget = Budget(self.pipeline.batch.max_events, self.pipeline.batch.max_bytes)
        looked = self._clock()  # before the look: a stream at rest has come as far as then, whatever is written since
        self.found = {item.name: self._look(item.name, budget) for item in self.pipeline.inputs}
        self._keep_abreast(budget)
        new = any(plan.splits or plan.offsets for plan in self.found.values())
        if not new and self.pipeline.process is None and not self.pipeline.batch.heartbeats:
            return None
        now, name = self._clock(), self.pipeline.pipeline
        marks = self._watermarks(state, looked)
        quiet = now - self._planned
        if not new and not time_passed(marks, state.watermarks, state.newest, self.pipeline.close, quiet):
            return None
        plan = join_plan(name, self.replica, state.last + 1, now, self.found, state.offsets, marks)
        if now - looked >= LOOK_SECONDS:  # whatever was written since, while this process was paused, may be unread
            plan = replace(plan, backlog_events=plan.backlog_events + 1)
        return self.write(plan)

    def _watermarks(self, state: JournalState, now: float) -> dict[str, int]:
        """How far each stream will have come with the plans that were found."""
        marks = {
            stream: stream_watermark(
                plan, self.pipeline.close, now, state.newest.get(stream), state.watermarks.get(stream),
                partial(self._sources[stream].last_written, state.offsets.get(stream, {})),
            )
            for stream, plan in self.found.items()
        }  # fmt: skip
        return {stream: mark for stream, mark in marks.items() if mark is not None}

    def _keep_abreast(self, budget: Budget) -> None:
        """Take less of what looks up where that would run ahead of what is looked up."""
        looked_up = [item.name for item in self.pipeline.inputs if item.role == "primary"]
        for item in self.pipeline.inputs:
            if item.role == "foreign":
                less = [abreast(budget, self.found[name], self.found[item.name]) for name in looked_up]
                if budgets := [some for some in less if some]:
                    self.found[item.name] = self._look(item.name, min(budgets, key=lambda some: some.max_events))

    def _look(self, stream: str, budget: Budget) -> SourcePlan:
        return self._sources[stream].plan(self.known().offsets.get(stream, {}), budget)

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
        if not self.journal.plan(plan, plan.planned_at):
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
