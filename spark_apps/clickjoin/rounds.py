"""Rounds of a replica's work: a batch of new records, one of what is due again, and when the next may begin."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from clickjoin.dispatcher.pacing import IDLE_SECONDS, DutyCycle, Pace, catch_up_pause
from clickjoin.dispatcher.peers import gives_way

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.port import Lake
    from clickjoin.model.batch_plan import BatchPlan
    from clickjoin.model.split import Problem


@dataclass(frozen=True)
class Settled:
    """A batch that is done: its plan and what it counted, as its row of table `metrics`."""

    plan: BatchPlan
    metrics: Mapping[str, object]


@dataclass(frozen=True)
class Round:
    """What came of a round. `due`: when the next may begin, by `time.monotonic`; `behind`: records are left unread.

    `seconds`: how long it looked in vain, where it has not `worked`.
    """

    due: float
    behind: bool = False
    worked: bool = True
    seconds: float = 0.0


class Worker(Protocol):
    """Who carries the batches out: an engine."""

    replica: str
    lake: Lake
    pipeline: Pipeline

    def join_once(self) -> Settled | None:
        """Run the next batch of new records."""

    def retry_once(self) -> Settled | None:
        """Try again what is due."""

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the sources."""

    def now(self) -> datetime:
        """The time by the lake's clock."""


class Rounds:
    """The trigger loop of one replica: trigger interval, share of retries, throttling beside others."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._half = DutyCycle()
        self._pacer = Pace(worker.pipeline.batch.trigger_interval)

    def once(
        self, *, retries: bool, done: Callable[[Settled], None], problems: Callable[[tuple[Problem, ...]], None]
    ) -> Round:
        """Work through one round."""
        worker, begun = self._worker, time.monotonic()
        joined = worker.join_once()
        behind = joined is not None and joined.plan.backlog_events > 0
        settled = [joined, self._half.of(worker.retry_once, behind) if retries else None]
        problems(worker.problems())
        for item in settled:
            if item:
                done(item)
        if not any(settled):
            now = time.monotonic()
            return Round(now + IDLE_SECONDS, worked=False, seconds=now - begun)
        return Round(self._due(joined, begun) if joined else time.monotonic(), behind)

    def _due(self, item: Settled, begun: float) -> float:
        """When the next batch of new records may begin.

        While this replica is behind and another is not, that one is left the rest of the time (`catch_up_share`). While
        nothing is behind, a pace is kept (see Pace): each batch adds files that others have to list.
        """
        worker = self._worker
        if not item.plan.backlog_events:
            return self._pacer.next_after(begun)
        if not gives_way(worker.lake.delta, worker.pipeline, worker.replica, worker.now()):
            return time.monotonic()
        worked = sum(float(str(value)) for name, value in item.metrics.items() if name.startswith("seconds_"))
        return time.monotonic() + catch_up_pause(worked, worker.pipeline.batch.catch_up_share)
