"""The output of another pipeline as a source: its rows, and how far that pipeline says that it has come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from clickjoin.chain.output_watermark import Upstream
from clickjoin.config import OfPipeline
from clickjoin.dispatcher.watermarks import BLIND
from clickjoin.model.split import Budget, SourceOffset, SourcePlan
from clickjoin.sources.delta.source import DeltaSource
from clickjoin.sources.open import open_source
from clickjoin.sources.port import Source

if TYPE_CHECKING:
    from clickjoin.config.pipeline import Input


class OutputSource(DeltaSource):
    """Rows of an upstream's `joined`, with the upstream's watermark once all of them are planned."""

    def __init__(self, source: OfPipeline, upstream: Upstream, tasks: int) -> None:
        super().__init__(source.path, start=source.start, as_json=source.json_columns, tasks=tasks, absent="not-begun")
        self._upstream = upstream

    def plan(self, offsets: Mapping[str, SourceOffset], budget: Budget) -> SourcePlan:
        """The rows of the versions after the last that was planned."""
        # Before the versions are looked at: what it vouches for is in them.
        mark = self._upstream.micros()
        plan = super().plan(offsets, budget)
        behind = plan.backlog_events or any(problem.kind in BLIND for problem in plan.problems)
        return replace(plan, watermark=None if behind else mark, reckoned=False)


def by_its_time(item: Input) -> bool:
    """Whether a stream's event time is that of the upstream's own events, so that its watermark holds for them."""
    stream = item.stream
    return stream.event_time == "event_time" or (
        stream.event_time in ("embedded", "uuid7") and stream.event_id == ("event_id",)
    )


def open_input(
    item: Input, *, now: Callable[[], float], tasks: int, here: Set[str] = frozenset(), group: str = ""
) -> Source:
    """The source of a pipeline's stream, for who plans batches of it; see `open_source`."""
    if isinstance(item.source, OfPipeline) and by_its_time(item):
        return OutputSource(item.source, Upstream(item.source.root), tasks)
    return open_source(item.source, now=now, tasks=tasks, here=here, group=group)
