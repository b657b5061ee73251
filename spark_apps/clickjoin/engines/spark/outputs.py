"""Claims, output and side outputs of a batch, each table by one commit of Delta's writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.engines.port import Outcome
from clickjoin.engines.spark.adapting import OUT
from clickjoin.model.extent import merge, timestamp
from clickjoin.model.ids import EVENT_KEY
from clickjoin.model.shards import Boundary, expired_sql
from clickjoin.schemas import BY_NAME, REGISTRY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engines.context import Context
    from clickjoin.engines.spark.lake import SparkLake

_CLAIMED = ("joined", "filtered", "unjoinable")


def claim(lake: SparkLake, ctx: Context, outcome: Outcome) -> bool:
    """See Lake.claim: one insert-only MERGE under the batch's transaction (Photon, sections 2 and 3.3.2).

    Its source is kept by Spark, one row an id. Literal buckets, shards and times on the target prune its files, and
    keep it apart from claims of other ids. By id a claim can lie in any bucket, and after a reshard in any shard.
    """
    wanted, txn = outcome.count(*_CLAIMED), ctx.plan.txn
    if not wanted:
        return lake.delta.commit_txn_only(REGISTRY.name, txn)
    rows = outcome.rows.of(*_CLAIMED).withColumns({"token": F.lit(ctx.plan.token), "outcome": F.col("status")})
    inserted = lake.commits.insert(REGISTRY.name, rows.select(*REGISTRY.names), _same(lake, ctx, outcome), txn)
    # Whatever was committed: without a commit of this number a late copy of the batch could still claim.
    lake.delta.commit_txn_only(REGISTRY.name, txn)
    return inserted == wanted


def _same(lake: SparkLake, ctx: Context, outcome: Outcome) -> str:
    shards = outcome.rows.shards
    if ctx.pipeline.by_id:
        one_each = lake.delta.rows("shard_timeline") == 1
        return "t.event_id = s.event_id" + (
            f" AND t.shard IN ({', '.join(map(str, sorted(shards)))})" if one_each else ""
        )
    own = merge(outcome.tallies[status].extent for status in _CLAIMED if status in outcome.tallies)
    return (
        "t.event_id = s.event_id AND t.event_time = s.event_time AND t.bucket = s.bucket AND t.shard = s.shard "
        f"AND {own.sql('t', shards)}"
    )


def publish(lake: SparkLake, ctx: Context, outcome: Outcome) -> None:
    """See Lake.publish."""
    if outcome.count("joined"):
        lake.commits.append("joined", output(lake, ctx, outcome.rows.of("joined")), ctx.plan.txn)


def output(lake: SparkLake, ctx: Context, rows: DataFrame) -> DataFrame:
    """Adapted rows as rows of `joined`, by this batch and now."""
    own = [F.col(f"`{OUT}{name}`").alias(name) for name in ctx.adapter.columns]
    by_batch = _stamped(ctx, rows).withColumns({
        "published_at": F.current_timestamp(),
        "event_date": F.substring("bucket", 1, 10).cast("date"),  # a bucket lies in one date
    })  # fmt: skip
    return by_batch.select(*lake.delta.table("joined").names, *own)


def write_side_outputs(
    lake: SparkLake, ctx: Context, outcome: Outcome, boundary: Callable[[], Boundary]
) -> Mapping[str, int]:
    """See Lake.write_side_outputs."""
    for status in ("filtered", "unjoinable"):
        _append(lake, ctx, status, outcome.rows.of(status), outcome.count(status))
    if ctx.plan.table is None and not outcome.count("pending", "expired"):
        return {}
    if _append_pending(lake, ctx, outcome):
        _append(lake, ctx, "expired", outcome.rows.of("expired"), outcome.count("expired"))
        return {}
    expired = _expired_as_committed(lake, ctx, outcome, boundary())
    count = expired.count()
    _append(lake, ctx, "expired", expired, count)
    return {"expired": count, "pending": outcome.count("pending", "expired") - count}


def _append(lake: SparkLake, ctx: Context, table: str, rows: DataFrame, count: int) -> None:
    if count:
        tried = _stamped(ctx, rows).withColumn("attempt", F.col("attempt") + 1)
        lake.commits.append(table, tried.select(*BY_NAME[table].names), ctx.plan.txn)


def _append_pending(lake: SparkLake, ctx: Context, outcome: Outcome) -> bool:
    """Append the states of events that wait, or were tried; whether they are by this call."""
    if ctx.plan.table is None and not outcome.count("pending"):
        return lake.delta.commit_txn_only("pending", ctx.plan.txn)
    rows = outcome.rows.events if ctx.plan.table else outcome.rows.of("pending")
    return lake.commits.append("pending", _states(ctx, rows).select(*BY_NAME["pending"].names), ctx.plan.txn)


def _states(ctx: Context, rows: DataFrame) -> DataFrame:
    """New states: an event that waits on, and, in a retry, one that needs no further try."""
    waits = F.col("status") == "pending"
    said = F.when(F.col("status") == "repeat", "claimed_elsewhere").otherwise(F.col("status"))
    # The record itself is kept once, in the row that was written when the event first had to wait.
    payload = F.col("payload") if ctx.plan.table is None else F.lit(None).cast("string")
    return _stamped(ctx, rows).withColumn("attempt", F.col("attempt") + 1).withColumns({
        "state": F.when(waits, "waiting").otherwise("resolved"), "outcome": F.when(~waits, said),
        "due_at": F.when(waits, F.expr(_due_sql(ctx))), "payload": payload,
    })  # fmt: skip


def _due_sql(ctx: Context) -> str:
    """The moment of the next try, over column `attempt` (tries made, this one among them); as kernel.waiting has it."""
    retry = ctx.pipeline.retry
    seconds = f"LEAST({ctx.pipeline.first_delay}D * POWER({retry.backoff}D, attempt - 1), {retry.max_delay}D)"
    return f"{timestamp(ctx.plan.planned_at)} + make_dt_interval(0, 0, 0, CAST({seconds} AS DECIMAL(18, 6)))"


def _expired_as_committed(lake: SparkLake, ctx: Context, outcome: Outcome, boundary: Boundary) -> DataFrame:
    """Events that neither joined nor wait by the batch's own commit to `pending`, and expired.

    The boundary was read again: anyone who has committed may have seen a newer one than this run.
    """
    plan = ctx.plan
    own = lake.read("pending").where((F.col("replica") == plan.replica) & (F.col("sequence") == plan.sequence))
    waits = own.where((F.col("batch") == plan.number) & (F.col("state") == "waiting")).select(*EVENT_KEY)
    left: DataFrame = outcome.rows.of("pending", "expired").where(expired_sql(boundary))
    return left.join(waits, list(EVENT_KEY), "left_anti").localCheckpoint(eager=False)


def _stamped(ctx: Context, rows: DataFrame) -> DataFrame:
    """Rows with the batch that they are of: token, replica, sequence, batch, at."""
    columns: dict[str, Any] = {
        "token": F.lit(ctx.plan.token), "replica": F.lit(ctx.plan.replica), "sequence": F.lit(ctx.plan.sequence),
        "batch": F.lit(ctx.plan.number).cast("bigint"), "at": F.current_timestamp(),
    }  # fmt: skip
    return rows.withColumns(columns)
