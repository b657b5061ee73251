"""Trying again what has not joined of a range: what waits or was given up, and what is older than the boundary.

No batch claims below the registry's boundary any more, so nothing but this writes output there, and uniqueness rests
on the output itself; by id, where the registry still holds claims of that time, on a claim as well. It waits for
batches from before the boundary moved, leaves alone what has a claim or an output already, and adds the rest as the
very next version after one whose ids it has read: of two runs at once one is refused, looks again, and finds the
other's rows.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from clickjoin.dispatcher import unsettled
from clickjoin.engine import Engine
from clickjoin.engines.context import Context
from clickjoin.engines.extents import extents, measured
from clickjoin.kernel.data_skipping import rows_in
from clickjoin.model import failpoint
from clickjoin.model.batch_plan import BY_FILL, FILL, BatchPlan, TableSplit
from clickjoin.model.ids import EPOCH, EVENT_KEY, MICROS, micros_of
from clickjoin.model.shards import claims_since, expired_sql
from clickjoin.registry.boundary import load_boundary
from clickjoin.registry.shards import load_timeline
from clickjoin.report.status import replicas
from clickjoin.retry.pending import open_rows
from clickjoin.schemas import BY_NAME, REGISTRY
from clickjoin.spark.rows import first_of_key, frame
from clickjoin.verification.snapshot import part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.model.extent import Extent
    from clickjoin.model.span import Span

_CENTURY = 100 * 365 * 86400 * MICROS


def try_again(engine: Engine, span: Span) -> dict[str, int]:
    """Redrive and retry the events of a range, of every replica, due or not; each that waits is tried once.

    Returns `redriven`, `tried` and `joined`. A replica that runs meanwhile is not disturbed: its batches are its
    journal's, no matter who carries them through.
    """
    low, high = (int(moment.timestamp() * MICROS) for moment in (span.low, span.high))
    delta, done = engine.lake.delta, {"redriven": 0, "tried": 0, "joined": 0}
    engines = {name: engine if name == engine.replica else engine.copy(name) for name in replicas(delta)}
    given_up = rows_in(delta.files("unjoinable"), span.extent(int(engine.pipeline.registry.bucket)))
    for own in engines.values():
        if given_up or own.redriver.unsettled():
            done["redriven"] += own.redrive((low, high))
    waits = Counter(row["replica"] for row in open_rows(delta) if span.low <= row["event_time"] < span.high)
    for name, left in waits.items():
        own = engines.get(name) or engine.copy(name)  # one that has begun since may have put events aside already
        while left > 0:
            settled = _try(own, low, high)
            if settled is None or not settled["events_in"]:
                break
            done["tried"] += settled["events_in"]
            done["joined"] += settled["joined"]
            left -= settled["events_in"]
    return done


def _try(engine: Engine, low: int, high: int) -> dict[str, int] | None:
    delta, now = engine.lake.delta, int(engine.clock() * MICROS)
    part = TableSplit(
        "pending", delta.version("pending"), now + _CENTURY, engine.pipeline.batch.max_events, since=low, until=high,
        read_until=engine.read_until(now), passed=engine.passed(),
    )  # fmt: skip
    plan = engine.retry.next_of_table(part)
    if plan is None:
        return None
    row = engine.finish(plan).metrics
    return {name: int(str(row[name])) for name in ("events_in", "joined")}


PATIENCE = 60.0
_ROWS_HERE = 50_000  # that this process holds at a time, with both records


def context(engine: Engine, sequence: str, micros: int) -> Context:
    """What work outside of the batches is done with: a plan that no journal holds, numbered by its moment."""
    plan = BatchPlan(engine.pipeline.pipeline, engine.replica, sequence, micros, planned=micros)
    delta = engine.lake.delta
    return Context(engine.pipeline, engine.lake, plan, engine.adapter, load_timeline(delta), load_boundary(delta))


def expired(engine: Engine, span: Span, ctx: Context) -> DataFrame:
    """Expired events of a range that have no claim and no output: columns of `expired`, one row an id."""
    lake, extent = engine.lake, span.extent(ctx.bucket_seconds)
    key = _key(engine)
    rows = part(lake, "expired", extent).where(expired_sql(ctx.boundary))
    for name in ("joined", "filtered", "unjoinable"):
        rows = rows.join(_held(engine, name, extent).select(*key), key, "left_anti")
    # A fill that was cut short has claimed events and not published them: they are this one's.
    claims = _held(engine, "registry", extent).select(
        F.col("event_id").alias("c_id"), F.when(F.expr(BY_FILL), F.col("event_time")).alias("c_filled"),
        F.col("event_time").alias("c_time"),
    )  # fmt: skip
    same = F.col("c_id") == F.col("event_id")
    same &= F.lit(True) if engine.pipeline.by_id else F.col("c_time") == F.col("event_time")
    others = F.col("c_filled").isNull() | (F.col("c_filled") != F.col("event_time"))
    rows = rows.join(claims, same & others, "left_anti")
    return first_of_key(rows, "event_time", "replica", "batch", key=tuple(key))


def _key(engine: Engine) -> list[str]:
    """What names an event."""
    return ["event_id"] if engine.pipeline.by_id else list(EVENT_KEY)


def _held(engine: Engine, name: str, extent: Extent) -> DataFrame:
    """Rows that can be of events of an extent: of an id alone all, since it may have come with another time."""
    return engine.lake.read(name) if engine.pipeline.by_id else part(engine.lake, name, extent)


def join_expired(engine: Engine, span: Span, micros: int, patience: float = PATIENCE) -> dict[str, int]:
    """Join the expired events of a range whose primary is there; the others stay. Returns `late` and `late_repeats`.

    late: rows that came into the output; late_repeats: rows of `expired` that went, as their id is in the output.
    """
    lake = engine.lake
    done = {"late": 0, "late_repeats": 0}
    if not rows_in(lake.delta.files("expired"), span.extent(int(engine.pipeline.registry.bucket))):
        return done
    # The boundary first: batches that may have read an older one than this are among those that are waited for.
    ctx = context(engine, FILL, micros)
    unsettled.handle(lake.delta, engine.pipeline, patience, engine.finish, lake.sleep)
    done["late"] = _join(ctx, expired(engine, span, ctx).localCheckpoint(eager=False))
    done["late_repeats"] = _forget(engine, span) - done["late"]
    return done


def _join(ctx: Context, rows: DataFrame) -> int:
    """Join some events, a part of them at a time; returns how many came into the output. Errors: AdapterError."""
    own, _ = extents(rows, ctx.bucket_seconds)
    parts = -(-own.rows // _ROWS_HERE)
    some = [rows.where(f"pmod(hash(event_id), {parts}) = {n}") for n in range(parts)] if parts > 1 else [rows][:parts]
    by_id = ctx.pipeline.by_id
    made = (ctx.lake.output_of(ctx, part_.toArrow()) for part_ in some)
    made = (_claimed(ctx, rows_, own) for rows_ in made) if by_id else made
    return sum(ctx.lake.insert_new("joined", rows_, own, by_id=by_id) for rows_ in made)


def _claimed(ctx: Context, made: pa.Table, own: Extent) -> pa.Table:
    """Rows of the output that may be added, under the tokens that hold them; those that need a claim get it first.

    Below the boundary nobody claims, but an event at it can repeat one that is `registry.repeats` older, where an id
    alone is a name: it has to find a claim of that.
    """
    ids, times = made["event_id"].to_pylist(), made["event_time"].to_pylist()
    shards = ctx.timeline.shards_of(ids, map(micros_of, times))
    kept = claims_since(ctx.boundary, ctx.pipeline.repeats)
    needs = pa.array([at >= kept.get(shard, EPOCH) for at, shard in zip(times, shards, strict=True)], pa.bool_())
    rows = made.append_column("shard", pa.array(shards, pa.int32())).filter(needs)
    if not rows.num_rows:
        return made
    outcome = pa.repeat(pa.scalar("joined"), rows.num_rows)
    ctx.lake.insert_new("registry", rows.append_column("outcome", outcome).select(REGISTRY.names), own, by_id=True)
    failpoint.reach("fill-claimed")
    wanted = frame(ctx.lake.spark, rows.select(["event_id", "event_time"]))
    held = ctx.lake.read("registry").where(BY_FILL).join(wanted, list(EVENT_KEY), "left_semi")
    tokens = {row["event_id"]: row["token"] for row in held.select("event_id", "token").collect()}
    at = made.schema.get_field_index("token")
    owned = zip(ids, made["token"].to_pylist(), needs.to_pylist(), strict=True)
    token = pa.array([tokens.get(name) if claimed else own_ for name, own_, claimed in owned], pa.string())
    return made.set_column(at, "token", token).filter(pc.is_valid(token))


def _forget(engine: Engine, span: Span) -> int:
    """Take out of `expired` what is in the output; returns how many ids."""
    lake, extent = engine.lake, span.extent(int(engine.pipeline.registry.bucket))
    key = _key(engine)
    ids = _held(engine, "joined", extent).select(*key)
    gone = part(lake, "expired", extent).join(ids, key, "left_semi").select(*BY_NAME["expired"].names)
    gone = gone.dropDuplicates(list(EVENT_KEY)).localCheckpoint(eager=False)
    where, _ = measured(gone)
    if where.rows:
        lake.delete_matched("expired", gone, where, same=())
    return where.rows
