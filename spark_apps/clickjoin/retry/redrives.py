"""Redrive batches one after the other, each planned in the journal, until nothing is left that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from clickjoin.engines.context import Context
from clickjoin.kernel.adapter import Adapter
from clickjoin.model.batch_plan import BatchPlan, TableSplit
from clickjoin.model.ids import MICROS
from clickjoin.registry.shards import load_timeline
from clickjoin.retry.redrive import redrive

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.dispatcher.dispatcher import Dispatcher
    from clickjoin.engines.port import Lake


class Redrives:
    """Sends a replica's unjoinable events again. `clock`: seconds since 1970."""

    def __init__(
        self,
        pipeline: Pipeline,
        lake: Lake,
        adapter: Adapter,
        dispatcher: Dispatcher,
        clock: Callable[[], float],
    ) -> None:
        self._pipeline, self._lake, self._adapter = pipeline, lake, adapter
        self._dispatcher, self._clock = dispatcher, clock

    def run(self, span: tuple[int, int] | None = None) -> int:
        """Send them all, in batches; returns how many.

        `span`: only events between these times (microseconds) whose primary event has come meanwhile.
        """
        sent = 0
        while True:
            plan = self._dispatcher.unsettled()
            if plan is None and self._lake.delta.rows("unjoinable"):
                plan = self._dispatcher.next_of_table(self._given_up(span))
            if plan is None:
                return sent
            moved = self._batch(plan)
            sent += moved
            if not moved:
                return sent

    def finish(self) -> int:
        """Finish a batch that was cut short, if there is one; returns how many events it sent again."""
        plan = self._dispatcher.unsettled()
        return self._batch(plan) if plan else 0

    def _batch(self, plan: BatchPlan) -> int:
        ctx = Context(self._pipeline, self._lake, plan, self._adapter, load_timeline(self._lake.delta), {})
        moved = redrive(ctx)
        self._dispatcher.settled(plan, {})
        return moved

    def _given_up(self, span: tuple[int, int] | None) -> TableSplit:
        delta = self._lake.delta
        most, now = self._pipeline.batch.max_events, int(self._clock() * MICROS)
        part = TableSplit("unjoinable", delta.version("unjoinable"), now, most)
        return part if span is None else replace(part, since=span[0], until=span[1], primary=delta.version("primary"))
