"""Side outputs: every event of a batch that did not join goes to the table of its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.batch_context import Context
from clickjoin.joiner.port import Outcome
from clickjoin.joiner.publish import append_rows, stamped
from clickjoin.model.boundary import expired_sql
from clickjoin.model.ids import EVENT_KEY
from clickjoin.registry.boundary import load_boundary
from clickjoin.retry.backoff import due_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_side_outputs(ctx: Context, outcome: Outcome) -> Mapping[str, int]:
    """Append what did not join to the table of its status, each in one commit.

    Returns counts by status where they are other than the outcome's.

    Which events wait is fixed by the commit to `pending`, before that to `expired`: the boundary moves on while a batch
    lies still, and a later run, or another copy, would call expired what an earlier one has put into `pending`, or lose
    what that one was about to call expired.
    """
    for status in ("filtered", "unjoinable"):
        _append(ctx, outcome, status)
    if ctx.plan.table is None and not outcome.count("pending", "expired"):
        return {}
    if _append_pending(ctx, outcome):
        _append(ctx, outcome, "expired")
        return {}
    expired = _expired_as_committed(ctx, stamped(ctx, outcome.rows()))
    count = expired.count()
    if count:
        append_rows(ctx, outcome, "expired", _tried(expired))
    return {"expired": count, "pending": outcome.count("pending", "expired") - count}


def _append(ctx: Context, outcome: Outcome, status: str) -> None:
    if files := outcome.files_of(status):
        ctx.lake.add(status, files, ctx.plan.txn)
    elif outcome.count(status):
        rows = stamped(ctx, outcome.rows().where(F.col("status") == status))
        append_rows(ctx, outcome, status, _tried(rows))


def _append_pending(ctx: Context, outcome: Outcome) -> bool:
    """Append the states of events that wait, or were tried; whether it is known that no other run had."""
    if files := outcome.files_of("pending"):
        return ctx.lake.add("pending", files, ctx.plan.txn)
    if ctx.plan.table is not None or outcome.count("pending"):
        rows = stamped(ctx, outcome.rows())
        some = rows if ctx.plan.table else rows.where("status = 'pending'")
        return append_rows(ctx, outcome, "pending", _pending(ctx, some))
    return ctx.lake.commit_txn_only("pending", ctx.plan.txn)


def _expired_as_committed(ctx: Context, rows: DataFrame) -> DataFrame:
    """Events that neither joined nor wait by the batch's own commit to `pending`, and expired.

    The boundary is read again: whoever has committed may have seen a newer one than this run.
    """
    plan = ctx.plan
    own = ctx.lake.read("pending").where((F.col("replica") == plan.replica) & (F.col("sequence") == plan.sequence))
    waits = own.where((F.col("batch") == plan.number) & (F.col("state") == "waiting")).select(*EVENT_KEY)
    left = rows.where(F.col("status").isin("pending", "expired")).where(expired_sql(load_boundary(ctx.lake.delta)))
    return left.join(waits, list(EVENT_KEY), "left_anti").localCheckpoint(eager=False)


def _tried(rows: DataFrame) -> DataFrame:
    return rows.withColumn("attempt", F.col("attempt") + 1)


def _pending(ctx: Context, rows: DataFrame) -> DataFrame:
    """New states: an event that waits on, and, in a retry, one that needs no further try."""
    waits = F.col("status") == "pending"
    outcome = F.when(F.col("status") == "repeat", "claimed_elsewhere").otherwise(F.col("status"))
    # The record itself is kept once, in the row that was written when the event first had to wait.
    payload = F.col("payload") if ctx.plan.table is None else F.lit(None).cast("string")
    return _tried(rows).withColumns(
        {
            "state": F.when(waits, "waiting").otherwise("resolved"),
            "outcome": F.when(~waits, outcome),
            "due_at": F.when(waits, F.expr(due_sql(ctx.pipeline.retry, ctx.plan.planned_at))),
            "payload": payload,
        }
    )
