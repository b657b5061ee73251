"""How far a replica has read what is looked up: none of its clicks is given up whose primary event may be unread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import LOOK_SECONDS, JournalReader, JournalState
from clickjoin.model.ids import MICROS
from clickjoin.model.split import Budget, SourcePlan

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.config.pipeline import Input
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.sources.port import Source

_LITTLE = Budget(1, 1)  # whether there is anything at all


class ReadUntil:
    """Asks up to when a replica has read its streams that are looked up: all that was written before has landed.

    A join that is down, or behind, lets no click run out of its attempts. `open_`: a source that is only looked at.
    """

    def __init__(self, pipeline: Pipeline, delta: DeltaReader, replica: str, open_: Callable[[Input], Source]) -> None:
        self._streams = [item for item in pipeline.inputs if item.role == "primary"]
        self._join = JournalReader(delta, pipeline.pipeline, replica, "join")
        self._open = open_
        self._sources: dict[str, Source] = {}

    def __call__(self, now: int) -> int:
        """The answer of now, both in microseconds since 1970; 0 where that is not known."""
        state = self._join.load()
        for item in self._streams:
            under_way = state.unsettled and state.unsettled.splits.get(item.name)
            if under_way or _holds_more(self._source(item).plan(state.offsets.get(item.name, {}), _LITTLE)):
                return _looked(state)
        return now

    def _source(self, item: Input) -> Source:
        if item.name not in self._sources:
            self._sources[item.name] = self._open(item)
        return self._sources[item.name]


def _looked(state: JournalState) -> int:
    """Until when all has landed for certain: what was written between a batch's look and its plan may be unread."""
    return max(state.read_until - int(LOOK_SECONDS * MICROS), 0)


def primary_passed(pipeline: Pipeline, delta: DeltaReader, replica: str) -> int | None:
    """The time (microseconds) before which clicks' primary events have all landed, if there are any; None: not known.

    As far as logs that are about in order can tell (close.max_out_of_orderness), and never beyond what it has read.
    """
    state = JournalReader(delta, pipeline.pipeline, replica, "join").load()
    marks = [state.passed.get(item.name) for item in pipeline.inputs if item.role == "primary"]
    known = [mark for mark in marks if mark is not None]
    ahead = pipeline.around.ahead if pipeline.around else 0  # so much later than its click one may lie
    return min(*known, _looked(state)) - ahead if known and len(known) == len(marks) else None


def _holds_more(plan: SourcePlan) -> bool:
    unreadable = any(problem.kind == "unreadable" for problem in plan.problems)
    return unreadable or bool(plan.splits or plan.backlog_events or plan.backlog_bytes)
