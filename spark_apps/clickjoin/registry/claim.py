"""Screening against the registry and claiming from it: who owns an id, for ever (Photon, sections 2 and 3.3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.batch_context import Context
from clickjoin.lake import small_append
from clickjoin.lake.committer import Unwritable
from clickjoin.model.boundary import expired_sql
from clickjoin.model.extent import Extent
from clickjoin.model.ids import EVENT_KEY
from clickjoin.registry import by_id, commit
from clickjoin.schemas import REGISTRY
from clickjoin.spark.rows import first_of_key
from clickjoin.spark.views import named

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from clickjoin.kernel.data_file import DataFile


def screen(ctx: Context, events: DataFrame, own: Extent) -> DataFrame:
    """Keep the first record of each id and say where it stands: column `standing`, and `claimed` (its claim's outcome).

    standing: new | mine (claimed by this very batch, before a crash) | repeat (claimed by another) | expired.
    """
    key = ("event_id",) if ctx.pipeline.by_id else EVENT_KEY
    unique = first_of_key(events, "source_partition", "offset", key=key)
    if ctx.pipeline.by_id:
        claims = by_id.claims_of(ctx, unique)
    else:
        claims = ctx.lake.read_named("registry", own, events.select("event_id", "event_time"))
    claims = claims.select(
        F.col("event_id").alias("c_id"),
        F.col("event_time").alias("c_time"),
        F.col("token").alias("c_token"),
        F.col("outcome").alias("claimed"),
    )
    same = F.col("c_id") == F.col("event_id")
    if not ctx.pipeline.by_id:
        same &= F.col("c_time") == F.col("event_time")
    seen = unique.join(claims, same, "left")
    standing = (
        F.when(F.col("c_token") == ctx.plan.token, "mine")
        .when(F.col("c_token").isNotNull(), "repeat")
        .when(F.expr(expired_sql(ctx.boundary)), "expired")
        .otherwise("new")
    )
    return seen.withColumn("standing", standing).drop("c_id", "c_time", "c_token")


def is_fixed(ctx: Context) -> bool:
    """Whether this batch's claims have been committed already, by whichever copy of it."""
    return ctx.lake.delta.latest_txn_version("registry", ctx.plan.txn.app_id) >= ctx.plan.number


def claim(ctx: Context, candidates: DataFrame, extent: Extent, shards: set[int], little: bool = False) -> bool:
    """Claim the ids of a batch with its token, in one commit that fixes its claims for ever.

    Columns in: those of the registry but for the token. True if this call claimed every one of them: then no other
    look at the registry is needed to know what to publish. `little`: they are few enough for this process.
    """
    if not extent.rows:
        return ctx.lake.commit_txn_only("registry", ctx.plan.txn)
    rows = candidates.withColumn("token", F.lit(ctx.plan.token)).select(*REGISTRY.names)
    try:
        inserted = _here(ctx, rows, shards) if little else _merged(ctx, rows, extent, shards)
    except (commit.TooMany, Unwritable):
        inserted = _merged(ctx, rows, extent, shards)
    # Whatever was committed: without a commit of this number a late copy of the batch could still claim.
    ctx.lake.commit_txn_only("registry", ctx.plan.txn)
    return inserted == extent.rows


def claim_written(
    ctx: Context, files: Sequence[DataFile], seen: pa.ChunkedArray, extent: Extent, shards: set[int]
) -> bool:
    """Claim what tasks have written, as `claim` does; `seen`: paths of the files that it was checked against."""
    if not files:
        return ctx.lake.commit_txn_only("registry", ctx.plan.txn)
    try:
        inserted = commit.commit_claim_files(ctx.lake, files, seen, ctx.plan.txn, by_id=ctx.pipeline.by_id)
    except (commit.Taken, Unwritable):  # a MERGE finds out which of them are free
        inserted = _merged(ctx, ctx.lake.written("registry", files), extent, shards)
    ctx.lake.commit_txn_only("registry", ctx.plan.txn)
    return inserted == extent.rows


def _here(ctx: Context, rows: DataFrame, shards: set[int]) -> int | None:
    few = small_append.collected(ctx.lake.delta, "registry", rows)
    if ctx.pipeline.by_id:
        return commit.commit_ids(ctx.lake, few, lambda: by_id.shards_of(ctx, shards), ctx.plan.txn)
    return commit.commit_claim_rows(ctx.lake, few, ctx.plan.txn)


def _merged(ctx: Context, rows: DataFrame, extent: Extent, shards: set[int]) -> int | None:
    with named(rows) as view:
        if not ctx.pipeline.by_id:
            return ctx.lake.merge_insert_only(view, extent.sql("t", shards), ctx.plan.txn)
        # In any shard: the lake may be resharded meanwhile, and every claim that is made then has to be a conflict.
        return ctx.lake.merge_insert_only(view, "TRUE", ctx.plan.txn, by_id=True)
