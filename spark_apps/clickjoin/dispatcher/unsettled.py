"""Batches that were planned before the boundary moved and are not settled: nothing may be dropped under them.

Such a batch may have read the older boundary, and so may still claim ids below the new one. It is waited for; if it
does not settle it is fenced, where it has claimed nothing, or else carried through by anyone who collects.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import JournalReader, is_settled, sequences

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.tables_port import Tables
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.model.batch_plan import BatchPlan

_LOOK_SECONDS = 0.5
Finish = Callable[["BatchPlan"], object]


@dataclass(frozen=True)
class Handled:
    """What became of stragglers, by token: settled meanwhile, fenced, or carried through."""

    settled: tuple[str, ...] = ()
    fenced: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()


def unsettled(delta: DeltaReader, pipeline: Pipeline) -> list[BatchPlan]:
    """Every batch, of every sequence of every replica, that is planned and not settled."""
    journals = [JournalReader(delta, pipeline.pipeline, *key) for key in sequences(delta)]
    found = [journal.load().unsettled for journal in journals if journal.planned() > journal.settled()]
    return sorted((plan for plan in found if plan), key=lambda plan: plan.planned)


def wait(
    delta: DeltaReader, open_: list[BatchPlan], patience: float, sleep: Callable[[float], None] = time.sleep
) -> list[BatchPlan]:
    """Wait up to `patience` seconds for batches to settle; returns those that have not."""
    for _ in range(int(patience / _LOOK_SECONDS)):
        open_ = [plan for plan in open_ if not is_settled(delta, plan)]
        if not open_:
            break
        sleep(_LOOK_SECONDS)
    return open_


def handle(
    delta: Tables,
    pipeline: Pipeline,
    patience: float,
    finish: Finish,
    sleep: Callable[[float], None] = time.sleep,
) -> Handled:
    """Wait up to `patience` seconds for all batches that are unsettled now, then handle those that still are.

    On return no batch that was planned before this call can claim below a boundary committed before it, and none has
    a claim whose output is missing. Errors: those of `finish`.
    """
    before = unsettled(delta, pipeline)
    open_ = wait(delta, before, patience, sleep)
    settled = [plan.token for plan in before if plan not in open_]
    fenced, finished = [], []
    for plan in open_:
        if plan.sequence in ("join", "recover") and delta.commit_txn_only("registry", plan.txn):
            fenced.append(plan.token)
        elif plan.sequence in ("join", "retry"):  # it has landed, or reads tables alone: anyone can carry it through
            finish(plan)
            finished.append(plan.token)
    return Handled(tuple(settled), tuple(fenced), tuple(finished))
