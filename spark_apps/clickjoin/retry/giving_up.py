"""Since when an event has to wait to be given up (Photon, section 3.2.1)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.model.ids import moment

if TYPE_CHECKING:
    from clickjoin.batch_context import Context


def waits_since(ctx: Context) -> datetime:
    """The latest moment at which an event was first seen that may be given up now.

    A click waits for its time as long as its primary event may be written and unread: an outage is no waiting.
    """
    read = ctx.plan.table.read_until if ctx.plan.table else None
    until = ctx.plan.planned_at if read is None else min(ctx.plan.planned_at, moment(read))
    return until - timedelta(seconds=ctx.pipeline.retry.max_age)
