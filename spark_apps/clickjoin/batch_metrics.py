"""A batch's row of table `metrics`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from clickjoin.dispatcher.watermarks import least
from clickjoin.engines.context import Context
from clickjoin.model.batch_plan import COUNTS, STEPS
from clickjoin.model.ids import MICROS, moment

if TYPE_CHECKING:
    from clickjoin.model.split import Problem


def row(ctx: Context, now: datetime, floods: Mapping[str, Problem | None]) -> dict[str, object]:
    """What a batch counted and timed, as of now; `floods`: of both streams, see event_store.flood."""
    joins = ctx.plan.sequence == "join"
    problems = (*ctx.plan.problems, *(problem for problem in floods.values() if problem and joins))
    made: dict[str, object] = {
        "replica": ctx.plan.replica,
        "sequence": ctx.plan.sequence,
        "batch": ctx.plan.number,
        "planned_at": ctx.plan.planned_at,
        "settled_at": now,
        "backlog_events": ctx.plan.backlog_events,
        "backlog_bytes": ctx.plan.backlog_bytes,
        "absent": ctx.counts["absent"],
        "false_positives": ctx.counts["false_positives"],
        "misfits": json.dumps(ctx.misfits, sort_keys=True) if ctx.misfits else None,
        "problems": json.dumps([asdict(problem) for problem in problems]) if problems else None,
    }
    watermark = least(ctx.plan.watermarks, len(ctx.pipeline.inputs))
    made["watermark"] = None if watermark is None else moment(watermark)
    made |= {name: ctx.counts[name] for name in COUNTS}
    for name, micros in zip(("latency_p50", "latency_p90", "latency_p99"), ctx.times, strict=False):
        made[name] = now.timestamp() - micros / MICROS
    return made | {f"seconds_{name}": round(ctx.seconds[name], 6) for name in STEPS}
