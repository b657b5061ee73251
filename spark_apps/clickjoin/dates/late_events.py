"""Trying again what has not joined of a range: what waits or was given up, and what is older than the boundary.

No batch claims below the registry's boundary any more, so nothing but this writes output there, and uniqueness rests
on the output itself. It waits for batches from before the boundary moved, leaves alone what has a claim or an output
already, and adds the rest as the very next version after one whose ids it has read: of two runs at once one is refused,
looks again, and finds the other's rows.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.batch_context import Context
from clickjoin.dispatcher import unsettled
from clickjoin.engine import Engine
from clickjoin.event_store.landing import extents, measured
from clickjoin.joiner.arrow_join import adapter_errors, own_copy
from clickjoin.joiner.dealing import as_files
from clickjoin.kernel.adapter_output import made_of
from clickjoin.kernel.arrays import rows_at
from clickjoin.kernel.data_skipping import rows_in
from clickjoin.kernel.event_key import dates_of
from clickjoin.kernel.lookup import look_up, none_needed
from clickjoin.kernel.resolving import adapted
from clickjoin.lake.insert_new import insert_new
from clickjoin.model.batch_plan import BatchPlan, TableSplit
from clickjoin.model.boundary import expired_sql
from clickjoin.model.ids import EVENT_KEY, MICROS
from clickjoin.registry.boundary import load_boundary
from clickjoin.registry.shards import load_timeline
from clickjoin.report.status import replicas
from clickjoin.retry.pending import open_rows
from clickjoin.schemas import BY_NAME
from clickjoin.verification.snapshot import part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.model.span import Span

_CENTURY = 100 * 365 * 86400 * MICROS


def try_again(engine: Engine, span: Span) -> dict[str, int]:
    """Redrive and retry the events of a range, of every replica, due or not; each that waits is tried once.

    Returns `redriven`, `tried` and `joined`. A replica that runs meanwhile is not disturbed: its batches are its
    journal's, whoever carries them through.
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
_TIME = pa.timestamp("us", "UTC")
_ROWS_HERE = 50_000  # that this process holds at a time, with both records


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
    done["late"] = _join(ctx, expired(engine, span, ctx).localCheckpoint(eager=False))
    done["late_repeats"] = _forget(engine, span) - done["late"]
    return done


def _join(ctx: Context, rows: DataFrame) -> int:
    """Join some events, a part of them at a time; returns how many came into the output. Errors: AdapterError."""
    own, _ = extents(rows, ctx.bucket_seconds)
    parts = -(-own.rows // _ROWS_HERE)
    some = [rows.where(f"pmod(hash(event_id), {parts}) = {n}") for n in range(parts)] if parts > 1 else [rows][:parts]
    return sum(insert_new(ctx.lake, "joined", _output(ctx, part_.toArrow()), own) for part_ in some)


def _output(ctx: Context, rows: pa.Table) -> pa.Table:
    """Rows of the output, of the events whose primary event is there, and that the adapter keeps."""
    adapter, delta, lookback = own_copy(ctx.adapter), ctx.lake.delta, ctx.pipeline.lookback
    rows = rows.set_column(rows.schema.get_field_index("event_time"), "event_time", rows["event_time"].cast(_TIME))
    if ctx.pipeline.stream:
        at, found = none_needed(rows)
    else:
        primary = as_files(delta.path("primary"), delta.files("primary"))
        rows = rows.filter(pc.is_valid(rows["primary_time" if lookback is None else "primary_id"]))
        at, found = look_up(rows, primary, None if lookback is None else round(lookback * MICROS), None)
    matched = rows_at(rows, at)
    matched = matched.set_column(matched.schema.get_field_index("primary_time"), "primary_time", found["event_time"])
    with adapter_errors(ctx, "nothing was changed"):
        out, made = adapted(adapter, made_of(adapter.columns, misfits=adapter.reports_misfits), matched, found)
    kept = rows_at(matched, out)
    own = {"token": ctx.plan.token, "replica": ctx.plan.replica, "published_at": datetime.now(UTC)}
    columns = {name: pa.repeat(pa.scalar(value), kept.num_rows) for name, value in own.items()}
    columns |= {"event_date": dates_of(kept)} | {name: made[name] for name in adapter.columns}
    names = [*delta.table("joined").names, *adapter.columns]
    return pa.table([columns[name] if name in columns else kept[name] for name in names], names=names)


def _forget(engine: Engine, span: Span) -> int:
    """Take out of `expired` what is in the output; returns how many ids."""
    lake, extent = engine.lake, span.extent(int(engine.pipeline.registry.bucket))
    ids = part(lake, "joined", extent).select(*EVENT_KEY)
    gone = part(lake, "expired", extent).join(ids, list(EVENT_KEY), "left_semi").select(*BY_NAME["expired"].names)
    gone = gone.dropDuplicates(list(EVENT_KEY)).localCheckpoint(eager=False)
    where, _ = measured(gone)
    if where.rows:
        lake.delete_matched("expired", gone, where, same=())
    return where.rows
