"""Joining events that are older than the registry's boundary: there uniqueness rests on the output itself.

No batch claims below the boundary any more, so nothing but this writes output there. It waits for batches from before
the boundary moved, leaves alone what has a claim or an output already, and inserts the rest by id in one MERGE: of
two runs at once one is refused, runs again, and finds the other's rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.batch_context import Context
from clickjoin.dispatcher import unsettled
from clickjoin.event_store.join_input import JoinInput
from clickjoin.event_store.landing import extents, measured
from clickjoin.event_store.lookup import primary_extent
from clickjoin.joiner.spark_join import adapt, output
from clickjoin.kernel.data_skipping import rows_in
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.boundary import expired_sql
from clickjoin.model.ids import EVENT_KEY
from clickjoin.registry.boundary import load_boundary
from clickjoin.registry.shards import load_timeline
from clickjoin.schemas import BY_NAME
from clickjoin.spark.views import named
from clickjoin.verification.snapshot import part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engine import Engine
    from clickjoin.model.span import Span

PATIENCE = 60.0


def context(engine: Engine, sequence: str, micros: int) -> Context:
    """What work outside of the batches is done with: a plan that no journal holds, numbered by its moment."""
    plan = BatchPlan(engine.pipeline.pipeline, engine.replica, sequence, micros, planned=micros)
    delta = engine.lake.delta
    return Context(engine.pipeline, engine.lake, plan, engine.adapter, load_timeline(delta), load_boundary(delta))


def expired(engine: Engine, span: Span, ctx: Context) -> DataFrame:
    """Expired events of a range that have no claim and no output: columns of `expired`, one row an id."""
    lake, extent = engine.lake, span.extent(ctx.bucket_seconds)
    rows = part(lake, "expired", extent).where(expired_sql(ctx.boundary)).dropDuplicates(list(EVENT_KEY))
    for name in ("registry", "joined", "filtered", "unjoinable"):
        rows = rows.join(part(lake, name, extent).select(*EVENT_KEY), list(EVENT_KEY), "left_anti")
    return rows


def join_expired(engine: Engine, span: Span, micros: int, patience: float = PATIENCE) -> dict[str, int]:
    """Join the expired events of a range whose primary is there; the others stay. Returns `late` and `late_repeats`.

    late: rows that came into the output; late_repeats: rows of `expired` that went, as their id is in the output.
    """
    lake = engine.lake
    done = {"late": 0, "late_repeats": 0}
    if not rows_in(lake.delta.files("expired"), span.extent(int(engine.pipeline.registry.bucket))):
        return done
    # The boundary first: batches that may have read an older one than this are among those that are waited for.
    ctx = context(engine, "fill", micros)
    unsettled.handle(lake.delta, engine.pipeline, patience, engine.finish, lake.sleep)
    rows = expired(engine, span, ctx).withColumn("standing", F.lit("new")).localCheckpoint(eager=False)
    own, named = extents(rows, ctx.bucket_seconds)
    if own.rows:
        work = JoinInput(own, primary_extent(ctx, own, named))
        done["late"] = _insert(ctx, output(ctx, adapt(ctx, rows, work).where("merged")))
    done["late_repeats"] = _forget(engine, span) - done["late"]
    return done


def _insert(ctx: Context, rows: DataFrame) -> int:
    held = rows.localCheckpoint(eager=False)
    where, _ = measured(held.withColumn("shard", F.lit(0)))
    if not where.rows:
        return 0
    with named(held) as view:
        return ctx.lake.merge_output(view, ctx.lake.terms("joined", where, "t"), held.columns)


def _forget(engine: Engine, span: Span) -> int:
    """Take out of `expired` what is in the output; returns how many ids."""
    lake, extent = engine.lake, span.extent(int(engine.pipeline.registry.bucket))
    ids = part(lake, "joined", extent).select(*EVENT_KEY)
    gone = part(lake, "expired", extent).join(ids, list(EVENT_KEY), "left_semi").select(*BY_NAME["expired"].names)
    gone = gone.dropDuplicates(list(EVENT_KEY)).localCheckpoint(eager=False)
    where, _ = measured(gone)
    if where.rows:
        with named(gone) as view:
            lake.delete_matched("expired", view, where.sql("t"), owner="bucket")
    return where.rows
