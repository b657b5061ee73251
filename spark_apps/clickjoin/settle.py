"""Writing down what became of a batch's events: the output first, then everything that did not join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.context import Context
from clickjoin.joiner.classify import OUT, Classified
from clickjoin.lake import few
from clickjoin.retry.backoff import due_sql
from clickjoin.tables import JOINED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake.written import Written

Files = Mapping[str, "Sequence[Written]"]


def _stamped(ctx: Context, rows: DataFrame) -> DataFrame:
    return rows.withColumns(
        {
            "token": F.lit(ctx.plan.token),
            "replica": F.lit(ctx.plan.replica),
            "sequence": F.lit(ctx.plan.sequence),
            "batch": F.lit(ctx.plan.number).cast("bigint"),
            "at": F.current_timestamp(),
        }
    )


def publish(ctx: Context, found: Classified, files: Files | None = None) -> None:
    """Append the output: exactly the rows that this batch's claims say are joined. `files`: those written already."""
    if not found.count("joined"):
        return
    if files is not None:
        ctx.lake.add("joined", files["joined"], ctx.plan.txn)
    else:
        _put(ctx, found, "joined", output(ctx, found.rows.where("status = 'joined'")))


def output(ctx: Context, rows: DataFrame) -> DataFrame:
    """Adapted rows as rows of `joined`, by this batch and now."""
    own = [F.col(f"`{OUT}{name}`").alias(name) for name in ctx.adapter.columns]
    stamped = _stamped(ctx, rows).withColumn("published_at", F.current_timestamp())
    return stamped.select(*JOINED.names, *own)


def is_published(ctx: Context) -> bool:
    """Whether this batch's output has been committed already, by whichever copy of it."""
    return ctx.lake.small.settled_txn("joined", ctx.plan.txn.app_id) >= ctx.plan.number


def set_aside(ctx: Context, found: Classified, files: Files | None = None) -> None:
    """Append what did not join to the table of its status, each in one commit. `files`: some is written already."""
    rows = _stamped(ctx, found.rows)
    for status in ("filtered", "unjoinable", "expired"):
        if files and files.get(status):
            ctx.lake.add(status, files[status], ctx.plan.txn)
        elif found.count(status):
            _put(ctx, found, status, _tried(rows.where(F.col("status") == status)))
    again = ctx.plan.pending is not None
    if again or found.count("pending"):
        _put(ctx, found, "pending", _pending(ctx, rows if again else rows.where("status = 'pending'")))


def _put(ctx: Context, found: Classified, name: str, rows: DataFrame) -> None:
    if found.little:
        few.append(ctx.lake, name, rows, ctx.plan.txn)
    else:
        ctx.lake.append(name, rows, ctx.plan.txn)


def _tried(rows: DataFrame) -> DataFrame:
    return rows.withColumn("attempt", F.col("attempt") + 1)


def _pending(ctx: Context, rows: DataFrame) -> DataFrame:
    """New states: an event that waits on, and, in a retry, one that needs no further try."""
    waits = F.col("status") == "pending"
    outcome = F.when(F.col("status") == "repeat", "elsewhere").otherwise(F.col("status"))
    # The record itself is kept once, in the row that was written when the event first had to wait.
    payload = F.col("payload") if ctx.plan.pending is None else F.lit(None).cast("string")
    return _tried(rows).withColumns(
        {
            "state": F.when(waits, "waiting").otherwise("resolved"),
            "outcome": F.when(~waits, outcome),
            "due_at": F.when(waits, F.expr(due_sql(ctx.pipeline.retry, ctx.plan.planned_at))),
            "payload": payload,
        }
    )
