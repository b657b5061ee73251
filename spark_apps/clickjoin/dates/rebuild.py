"""Recomputing the output of a range with today's adapter: the same ids, one commit, readers see before or after.

Files of the output are replaced, or a MERGE by id writes them again: never is a partition overwritten, for rows that
are published meanwhile are none of its business, and stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.dates import arrow_rebuild
from clickjoin.dates.late_events import context
from clickjoin.event_store.join_input import JoinInput
from clickjoin.event_store.landing import extents
from clickjoin.event_store.lookup import primary_extent
from clickjoin.joiner.spark_join import OUT, adapt
from clickjoin.lake.committer import Unwritable
from clickjoin.lake.replace_files import replace_files
from clickjoin.model.errors import CommitConflict, LakeError
from clickjoin.model.ids import EVENT_KEY
from clickjoin.spark.rows import first_of_key
from clickjoin.spark.views import named
from clickjoin.verification.snapshot import part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.batch_context import Context
    from clickjoin.engine import Engine
    from clickjoin.model.span import Span

_REASONS = {
    "foreign": "whose own record was collected (retention.foreign)",
    "primary": "whose primary event was collected (retention.primary)",
    "adapter": "that today's adapter leaves out",
    "doubled": "that are there once more",
}
_REMEDIES = {
    frozenset({"foreign", "primary"}): "Land the logs again (`clickjoin backfill --foreign … --primary …`)",
    frozenset({"adapter"}): "Have the adapter make a row of each of these ids",
    frozenset({"doubled"}): "Take them out with `clickjoin verify --repair --remove-doubles`",
}
_RUNS = 10


def records(engine: Engine, span: Span, width: int) -> DataFrame:
    """Every id of the output in a range, with the record of it that landed first: payload null where it was collected.

    Columns: event_id, event_time, bucket, shard, primary_id, primary_time, payload, source_partition, offset, again
    (how many rows of it there are besides).
    """
    extent = span.extent(width)
    output = part(engine.lake, "joined", extent)
    if engine.pipeline.stream:
        output = output.selectExpr("*", "CAST(NULL AS STRING) primary_id", "CAST(NULL AS TIMESTAMP) primary_time")
    own = [F.first(name).alias(name) for name in ("bucket", "primary_id", "primary_time")]
    output = output.groupBy(*EVENT_KEY).agg(*own, (F.count(F.lit(1)) - 1).alias("again"))
    landed = first_of_key(part(engine.lake, "foreign", extent), "landed_at", "replica", "source_partition", "offset")
    kept = landed.select(*EVENT_KEY, "payload", "source_partition", "offset")
    return output.join(kept, list(EVENT_KEY), "left").withColumn("shard", F.lit(0))


def missing(adapted: DataFrame) -> dict[str, int]:
    """How many ids of the output cannot be rebuilt, by reason (see _REASONS)."""
    row = adapted.agg(
        F.expr("count_if(payload IS NULL)").alias("foreign"),
        F.expr("count_if(payload IS NOT NULL AND kept AND NOT found AND NOT merged)").alias("primary"),
        F.expr("count_if(payload IS NOT NULL AND NOT merged AND (found OR NOT kept))").alias("adapter"),
        F.expr("COALESCE(SUM(again), 0)").alias("doubled"),
        F.count(F.lit(1)).alias("rows"),
    ).collect()[0]
    found: dict[str, int] = row.asDict()
    return found


def rebuild(engine: Engine, span: Span, micros: int) -> dict[str, int]:
    """Recompute the output of a range; returns `rebuilt`, the number of rows.

    Errors: LakeError where some id could not be rebuilt, AdapterError, CommitConflict; then nothing was changed.
    """
    ctx = context(engine, "rebuild", micros)
    if not arrow_rebuild.can_rebuild(ctx):
        return {"rebuilt": _by_spark(engine, span, ctx)}
    try:
        return {"rebuilt": _by_files(span, ctx)}
    except Unwritable:
        return {"rebuilt": _by_spark(engine, span, ctx)}


def counted(engine: Engine, span: Span, ctx: Context) -> dict[str, int]:
    """How many ids of the output there are (`rows`), and how many cannot be rebuilt, by reason. Changes nothing."""
    if arrow_rebuild.can_rebuild(ctx):
        return arrow_rebuild.rebuilt(ctx, span, writes=False).counts
    return rebuilt_rows(engine, span, ctx)[1]


def _by_files(span: Span, ctx: Context) -> int:
    for _ in range(_RUNS):
        made = arrow_rebuild.rebuilt(ctx, span, writes=True)
        rows = _all_of(span, made.counts)
        # False: rows of these files were moved, changed or removed meanwhile; what is written is nobody's.
        if not rows or replace_files(ctx.lake, "joined", made.old, made.files):
            return rows
    raise CommitConflict(
        f"{ctx.lake.delta.path('joined')}: its files of {span.low:%Y-%m-%d} were rewritten {_RUNS} times while rows of "
        "theirs were made again; nothing was changed",
        remedy="Look who rewrites them all the time, and rebuild the date after that",
    )


def _by_spark(engine: Engine, span: Span, ctx: Context) -> int:
    adapted, counts = rebuilt_rows(engine, span, ctx)
    rows = _all_of(span, counts)
    if rows:
        _update(ctx, adapted, span)
    return rows


def _all_of(span: Span, counts: dict[str, int]) -> int:
    """The number of ids, all of which can be rebuilt. Errors: LakeError."""
    rows = counts["rows"]
    if gone := {name: count for name, count in counts.items() if count and name != "rows"}:
        why = ", ".join(f"{count} {_REASONS[name]}" for name, count in gone.items())
        raise LakeError(
            f"{span.low:%Y-%m-%d}: of {rows} ids in the output there are {why}; nothing was changed",
            remedy="; ".join(_REMEDIES[name] for name in _REMEDIES if gone.keys() & name),
        )
    return rows


def rebuilt_rows(engine: Engine, span: Span, ctx: Context) -> tuple[DataFrame, dict[str, int]]:
    """The adapter's answer for every id of the output, and what `missing` says of it. Changes nothing."""
    rows = records(engine, span, ctx.bucket_seconds).localCheckpoint(eager=False)
    own, wanted = extents(rows, ctx.bucket_seconds)
    standing = F.when(F.col("payload").isNotNull(), "new").otherwise("gone")
    work = JoinInput(own, primary_extent(ctx, own, wanted))
    adapted = adapt(ctx, rows.withColumn("standing", standing), work).localCheckpoint(eager=False)
    return adapted, missing(adapted)


def _update(ctx: Context, adapted: DataFrame, span: Span) -> None:
    known = ctx.lake.delta.columns("joined")
    makes = {name: F.col(f"`{OUT}{name}`") for name in ctx.adapter.columns}
    # What an earlier adapter made and today's does not is no answer of today's adapter.
    own = ctx.lake.delta.table("joined").names
    stale = {name: F.lit(None) for name in known if name not in own and name not in makes}
    columns: dict[str, Any] = {name: F.col(name) for name in ("primary_time",) if name in own} | makes | stale
    rows = adapted.select(*EVENT_KEY, "bucket", *[column.alias(name) for name, column in columns.items()])
    with named(rows) as view:
        ctx.lake.update_output(view, ctx.lake.terms("joined", span.extent(ctx.bucket_seconds), "t"), list(columns))
