"""What every step of a batch works with."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.kernel.adapter import Adapter
from clickjoin.kernel.forgotten import NOTHING
from clickjoin.kernel.land_task import Place
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.shards import Boundary, Timeline

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.port import Lake
    from clickjoin.kernel.forgotten import Forgotten
    from clickjoin.model.split import Problem


@dataclass
class Context:
    """One batch under way: its plan, the tables, and what it has counted and timed so far (`seconds` by step)."""

    pipeline: Pipeline
    lake: Lake
    plan: BatchPlan
    adapter: Adapter
    timeline: Timeline
    boundary: Boundary
    floor: datetime | None = None  # no primary event from before it is joined to
    forgotten: Mapping[str, Forgotten] = field(default_factory=dict)  # by stream: whose records are not to be landed
    counts: defaultdict[str, int | None] = field(default_factory=lambda: defaultdict(int))
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    floods: dict[str, Problem | None] = field(default_factory=dict)  # by stream: nearly all is in quarantine, or not
    misfits: dict[str, int] = field(default_factory=dict)  # by column: values of joined rows that did not fit
    newest: dict[str, int] = field(default_factory=dict)  # by stream: the newest event time (microseconds) that landed
    times: tuple[int, ...] = ()  # quantiles p50, p10, p01 of the joined events' times (microseconds)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start

    @property
    def bucket_seconds(self) -> int:
        """Width of a bucket."""
        return int(self.pipeline.registry.bucket)

    def place(self, stream: str) -> Place:
        """What rows of a stream's records are made by."""
        since, counts = self.timeline.steps
        at = round(self.plan.planned_at.timestamp() * MICROS)
        forgotten = self.forgotten.get(stream, NOTHING)
        prefer = self.pipeline.match.prefer if self.pipeline.match and stream == "primary" else ()
        by = (self.plan.number, self.plan.replica, at)
        return Place(self.bucket_seconds, since, counts, *by, stream, forgotten, prefer)

    @property
    def waits_since(self) -> datetime:
        """The latest moment at which an event was first seen that may be given up now (Photon, section 3.2.1).

        A click waits for its time as long as its primary event may be written and unread: an outage is no waiting.
        """
        read = self.plan.table.read_until if self.plan.table else None
        until = self.plan.planned_at if read is None else min(self.plan.planned_at, moment(read))
        return until - timedelta(seconds=self.pipeline.retry.max_age)

    @property
    def passed(self) -> int | None:
        """The time (microseconds) before which foreign events' primary events have all landed; None: not known.

        Of a batch of new records it is asked only where they are decided by that: joins by a key and time.
        """
        if self.plan.table:
            return self.plan.table.passed
        around, mark = self.pipeline.around, self.plan.watermarks.get("primary")
        if around is None or not around.pick or mark is None:
            return None
        return mark - around.ahead

    @property
    def is_fixed(self) -> bool:
        """Whether this batch's claims have been committed already, by whichever copy of it."""
        return self.lake.delta.latest_txn_version("registry", self.plan.txn.app_id) >= self.plan.number
