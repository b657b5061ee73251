"""Sending unjoinable events again: their claim is taken back, and they wait as if they were new.

The order matters, and every step can be repeated: claim gone, then pending, then gone from `unjoinable`. A claim is
taken back by id and token, so that a late copy of this batch cannot touch a newer claim of the same id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.engines.context import Context
from clickjoin.engines.extents import extents, measured
from clickjoin.engines.lookup import look_up, primary_extent
from clickjoin.forgotten.known import as_arrow, forgotten
from clickjoin.model.errors import BatchError
from clickjoin.model.ids import EVENT_KEY
from clickjoin.retry.vacuumed_version import given_up, is_gone, sent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.model.batch_plan import TableSplit


def redrive(ctx: Context) -> int:
    """Run a redrive batch; returns how many events it sent again."""
    part = ctx.plan.table
    if part is None:
        raise BatchError(f"batch {ctx.plan.token}: has no split of `unjoinable`")
    try:
        rows = _taken(ctx, part).localCheckpoint(eager=False)
        own, shards = measured(rows)
        gone = False
    except Exception as error:
        gone = is_gone(ctx, part, error)
        if not gone:
            raise
        rows = given_up(ctx, part).localCheckpoint(eager=False)
        own, shards = measured(rows)
    if own.rows:
        ctx.lake.delete_matched("registry", rows, own, shards)
        ctx.lake.delta.commit_txn_only(
            "registry", ctx.plan.txn
        )  # a registry that still has the claims is known by its absence
        ctx.lake.append("pending", _again(ctx, rows), ctx.plan.txn)
        # Of two copies whose rows differ one alone has written what waits: nothing else may go.
        ctx.lake.delete_matched("unjoinable", sent(ctx, rows) if gone else rows, own)
        ctx.lake.delta.commit_txn_only("unjoinable", ctx.plan.txn)
    return own.rows


def _taken(ctx: Context, part: TableSplit) -> DataFrame:
    rows = ctx.lake.read("unjoinable", part.version).where(F.col("replica") == ctx.plan.replica).where(part.where)
    if gone := forgotten(ctx.lake.delta).of("foreign"):  # their claims stay, whatever this version still holds of them
        rows = rows.join(ctx.lake.spark.createDataFrame(as_arrow(gone)), list(EVENT_KEY), "left_anti")
    if part.primary is not None:
        rows = _with_primary(ctx, rows, part.primary)
    return rows.orderBy("at", "event_id").limit(part.limit)


def _with_primary(ctx: Context, rows: DataFrame, version: int) -> DataFrame:
    """Those whose primary event is in a version of `primary`: always the same ones, however often this is run.

    So the floor of `primary` is not asked for: it may have moved since a copy of this batch gave claims back.
    """
    own, named = extents(rows, ctx.bucket_seconds)
    kept = {name: f"kept_{name}" for name in ("primary_id", "primary_time")}
    marked = rows.withColumns({keep: F.col(name) for name, keep in kept.items()})
    looked = look_up(ctx, marked, primary_extent(ctx, own, named), version).where("found")
    return looked.withColumns({name: F.col(keep) for name, keep in kept.items()}).select(*rows.columns)


def _again(ctx: Context, rows: DataFrame) -> DataFrame:
    return rows.withColumns(
        {
            "state": F.lit("waiting"),
            "outcome": F.lit(None).cast("string"),
            "round": F.col("round") + 1,
            "attempt": F.lit(0),
            "first_seen": F.lit(ctx.plan.planned_at),
            "due_at": F.lit(ctx.plan.planned_at),
            "sequence": F.lit("redrive"),
            "batch": F.lit(ctx.plan.number).cast("bigint"),
        }
    )
