"""Retries that were planned on a version of a table that has been lost with it since: they can take up nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.dispatcher.unsettled import unsettled
from clickjoin.model.reporter import Reporter

if TYPE_CHECKING:
    from clickjoin.engine import Engine
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.model.batch_plan import BatchPlan


def settle_stranded(engine: Engine, report_line: Reporter) -> None:
    """Settle them with what they have done already: claims whose output is missing are then nobody's in flight.

    So the look that follows finds those claims, and has their events dispatched again.
    """
    for plan in unsettled(engine.lake.delta, engine.pipeline):
        if plan.sequence == "retry" and _is_stranded(engine.lake.delta, plan):
            report_line(f"{plan.token} was planned on a version that is lost: it is settled with what it has done")
            engine.finish(plan)


def _is_stranded(delta: DeltaReader, plan: BatchPlan) -> bool:
    named = plan.table.versions if plan.table else {}
    return any(delta.version(table) < version for table, version in named.items())
