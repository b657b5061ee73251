"""What the next batch of new records is to read, from what the journal knows and the sources hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import LOOK_SECONDS, SNAPSHOT_EVERY, JournalState, OffsetsByStream, fold
from clickjoin.dispatcher.pacing import abreast
from clickjoin.dispatcher.watermarks import stream_watermark, time_passed
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.ids import MICROS
from clickjoin.model.split import Budget, SourceOffset, SourcePlan
from clickjoin.sources.port import Source

if TYPE_CHECKING:
    from clickjoin.config import Pipeline


@dataclass(frozen=True)
class Proposal:
    """A plan that is not in the journal yet (None: nothing is to be read), and the offsets that it goes on from.

    `found`: what the sources have said, by stream.
    """

    plan: BatchPlan | None
    found: Mapping[str, SourcePlan]
    offsets: OffsetsByStream

    def follows(self, state: JournalState) -> bool:
        """Whether it is what comes next: its number is free, and no offset has moved or gone back meanwhile."""
        return self.plan is not None and self.plan.number == state.last + 1 and self.offsets == state.offsets


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


class Planner:
    """Looks at the sources of a replica and proposes its next batch."""

    def __init__(
        self, pipeline: Pipeline, replica: str, sources: Mapping[str, Source], clock: Callable[[], float]
    ) -> None:
        self._pipeline = pipeline
        self._replica = replica
        self._sources = sources
        self._clock = clock

    def propose(self, state: JournalState, newest: Mapping[str, int], planned: float) -> Proposal:
        """Propose what follows a state. `newest`: see JournalState; `planned`: when the last plan was written.

        Where something rests on it (Pipeline.says_time_passes), an empty batch is planned now and then, so that the
        watermark advances.
        """
        offsets = {stream: dict(items) for stream, items in state.offsets.items()}
        looked = self._clock()  # before the look: a stream at rest has come as far as then, whatever is written since
        found = self._find(offsets)
        new = any(plan.splits or plan.offsets for plan in found.values())
        if not new and not self._pipeline.says_time_passes:
            return Proposal(None, found, offsets)
        now, name = self._clock(), self._pipeline.pipeline
        marks = self._watermarks(state, found, newest, looked)
        if not new and not time_passed(marks, state.watermarks, newest, self._pipeline.close, now - planned):
            return Proposal(None, found, offsets)
        plan = join_plan(name, self._replica, state.last + 1, now, found, offsets, marks)
        if now - looked >= LOOK_SECONDS:  # whatever was written since, while this process was paused, may be unread
            plan = replace(plan, backlog_events=plan.backlog_events + 1)
        return Proposal(plan, found, offsets)

    def _find(self, offsets: OffsetsByStream) -> dict[str, SourcePlan]:
        """What each source has; less of what looks up where that would run ahead of what is looked up."""
        budget = Budget(self._pipeline.batch.max_events, self._pipeline.batch.max_bytes)

        def look(stream: str, budget: Budget) -> SourcePlan:
            return self._sources[stream].plan(offsets.get(stream, {}), budget)

        found = {item.name: look(item.name, budget) for item in self._pipeline.inputs}
        looked_up = [item.name for item in self._pipeline.inputs if item.role == "primary"]
        for item in self._pipeline.inputs:
            if item.role == "foreign":
                less = [abreast(budget, found[name], found[item.name]) for name in looked_up]
                if budgets := [some for some in less if some]:
                    found[item.name] = look(item.name, min(budgets, key=lambda some: some.max_events))
        return found

    def _watermarks(
        self, state: JournalState, found: Mapping[str, SourcePlan], newest: Mapping[str, int], now: float
    ) -> dict[str, int]:
        """How far each stream will have come with the plans that were found."""
        marks = {
            stream: stream_watermark(
                plan, self._pipeline.close, now, newest.get(stream), state.watermarks.get(stream),
                partial(self._sources[stream].last_written, state.offsets.get(stream, {})),
            )
            for stream, plan in found.items()
        }  # fmt: skip
        return {stream: mark for stream, mark in marks.items() if mark is not None}
