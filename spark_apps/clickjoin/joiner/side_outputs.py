"""Side outputs: every event of a batch that did not join goes to the table of its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.batch_context import Context
from clickjoin.joiner.port import Outcome
from clickjoin.joiner.publish import append_rows, stamped
from clickjoin.retry.backoff import due_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_side_outputs(ctx: Context, outcome: Outcome) -> None:
    """Append what did not join to the table of its status, each in one commit."""
    rows = stamped(ctx, outcome.rows)
    for status in ("filtered", "unjoinable", "expired"):
        if files := outcome.files_of(status):
            ctx.lake.add(status, files, ctx.plan.txn)
        elif outcome.count(status):
            append_rows(ctx, outcome, status, _tried(rows.where(F.col("status") == status)))
    is_retry = ctx.plan.table is not None
    if is_retry or outcome.count("pending"):
        append_rows(ctx, outcome, "pending", _pending(ctx, rows if is_retry else rows.where("status = 'pending'")))


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
