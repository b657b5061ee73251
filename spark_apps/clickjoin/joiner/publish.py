"""Whether a batch can publish all that it has claimed."""

from __future__ import annotations

from clickjoin.engines.context import Context
from clickjoin.engines.port import Outcome
from clickjoin.model.errors import BatchError


def require_complete(ctx: Context, outcome: Outcome) -> None:
    """Check that every claim of the batch has its primary event, and that the adapter keeps it. Errors: BatchError."""
    broken = outcome.count("broken")
    if not broken or _is_published(ctx):  # else this is a late copy, and its queries are collected
        return
    if outcome.dropped:
        what = f"adapter {ctx.pipeline.adapter}" if ctx.pipeline.output.is_default else "`output`"
        raise BatchError(
            f"batch {ctx.plan.token}: has claimed {outcome.dropped} events as joined that {what} drops: it was "
            "another, or another version of it, when they were claimed",
            remedy="Put that one back until the batch is settled (`clickjoin drain`), then change it",
        )
    raise BatchError(
        f"batch {ctx.plan.token}: {broken} of its claims have no primary event any more",
        remedy="Look whether rows of table `primary` were removed; the batch stays unsettled",
    )


def _is_published(ctx: Context) -> bool:
    """Whether this batch's output has been committed already, by whichever copy of it."""
    return ctx.lake.delta.latest_txn_version("joined", ctx.plan.txn.app_id) >= ctx.plan.number
