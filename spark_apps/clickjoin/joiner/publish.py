"""Publishing: the rows that this batch's claims say are joined, and no others, in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.batch_context import Context
from clickjoin.joiner.port import Outcome
from clickjoin.joiner.spark_join import OUT
from clickjoin.lake import small_append
from clickjoin.model.errors import BatchError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def publish(ctx: Context, outcome: Outcome) -> None:
    """Append the output: exactly the rows that this batch's claims say are joined."""
    if not outcome.count("joined"):
        return
    if outcome.files:
        ctx.lake.add("joined", outcome.files_of("joined"), ctx.plan.txn)
    else:
        append_rows(ctx, outcome, "joined", output(ctx, outcome.rows().where("status = 'joined'")))


def require_complete(ctx: Context, outcome: Outcome) -> None:
    """Check that every claim of the batch has its primary event, and that the adapter keeps it. Errors: BatchError."""
    broken = outcome.count("broken")
    if not broken or _is_published(ctx):  # else this is a late copy, and its queries are collected
        return
    if dropped := outcome.rows().where("status = 'broken' AND (found OR NOT kept)").count():
        what = f"adapter {ctx.pipeline.adapter}" if ctx.pipeline.output.is_default else "`output`"
        raise BatchError(
            f"batch {ctx.plan.token}: has claimed {dropped} events as joined that {what} drops: it was another, or "
            "another version of it, when they were claimed",
            remedy="Put that one back until the batch is settled (`clickjoin drain`), then change it",
        )
    raise BatchError(
        f"batch {ctx.plan.token}: {broken} of its claims have no primary event any more",
        remedy="Look whether rows of table `primary` were removed; the batch stays unsettled",
    )


def output(ctx: Context, rows: DataFrame) -> DataFrame:
    """Adapted rows as rows of `joined`, by this batch and now."""
    own = [F.col(f"`{OUT}{name}`").alias(name) for name in ctx.adapter.columns]
    by_batch = stamped(ctx, rows).withColumn("published_at", F.current_timestamp())
    by_batch = by_batch.withColumn("event_date", F.substring("bucket", 1, 10).cast("date"))  # a bucket lies in one date
    return by_batch.select(*ctx.lake.delta.table("joined").names, *own)


def _is_published(ctx: Context) -> bool:
    """Whether this batch's output has been committed already, by whichever copy of it."""
    return ctx.lake.delta.latest_txn_version("joined", ctx.plan.txn.app_id) >= ctx.plan.number


def append_rows(ctx: Context, outcome: Outcome, table: str, rows: DataFrame) -> bool:
    """Append rows of an outcome to a table, by this process where they are few, else by Spark.

    Returns as SparkTables.append does.
    """
    if outcome.fits_driver:
        return small_append.append(ctx.lake, table, rows, ctx.plan.txn)
    return ctx.lake.append(table, rows, ctx.plan.txn)


def stamped(ctx: Context, rows: DataFrame) -> DataFrame:
    """Rows with the batch that they are of: token, replica, sequence, batch, at."""
    return rows.withColumns(
        {
            "token": F.lit(ctx.plan.token),
            "replica": F.lit(ctx.plan.replica),
            "sequence": F.lit(ctx.plan.sequence),
            "batch": F.lit(ctx.plan.number).cast("bigint"),
            "at": F.current_timestamp(),
        }
    )
