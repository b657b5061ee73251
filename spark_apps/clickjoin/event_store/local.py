"""Landing a few megabytes: parsed and appended by this process, since a Spark job costs more than the work itself.

The same rows in the same tables under the same transactions as by Spark's workers; a replay may take the other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.events import MICROS, bucket_of
from clickjoin.lake import Txn
from clickjoin.lake.extent import MINUTE
from clickjoin.lake.types import arrow_schema
from clickjoin.tables import BY_NAME, QUARANTINE

if TYPE_CHECKING:
    from clickjoin.context import Context


def append_good(ctx: Context, stream: str, records: pa.Table) -> dict[str, Any]:
    """Append the good records to their stream's table; returns facts as landing._facts names them.

    Columns in: those of RECORDS_DDL.
    """
    good = records.filter(pc.is_null(records["reason"]))
    facts = {"good": good.num_rows, "bad": _count_bad(records)} | _span(ctx.bucket_seconds, good, "event_time", "")
    if stream == "foreign":
        facts |= _span(ctx.bucket_seconds, good, "primary_time", "named_")
    micros = good["event_time"].cast(pa.int64()).to_pylist()
    made = {
        "bucket": buckets_of(good["event_time"], ctx.bucket_seconds),
        "shard": pa.array(ctx.timeline.shards_of(good["event_id"].to_pylist(), micros), pa.int32()),
        "batch": pa.repeat(pa.scalar(ctx.plan.number, pa.int64()), good.num_rows),
        "replica": pa.repeat(ctx.plan.replica, good.num_rows),
        "landed_at": _at(ctx, good.num_rows),
    }
    ctx.lake.append(stream, _as_table(stream, good, made), ctx.plan.txn)
    return facts


def append_bad(ctx: Context, stream: str, records: pa.Table, txn: Txn) -> None:
    """Put the bad records aside. Columns in: those of RECORDS_DDL."""
    bad = records.filter(pc.is_valid(records["reason"]))
    made = {
        "stream": pa.repeat(stream, bad.num_rows),
        "batch": pa.repeat(pa.scalar(ctx.plan.number, pa.int64()), bad.num_rows),
        "replica": pa.repeat(ctx.plan.replica, bad.num_rows),
        "at": _at(ctx, bad.num_rows),
    }
    ctx.lake.append(QUARANTINE.name, _as_table(QUARANTINE.name, bad, made), txn)


def buckets_of(times: pa.ChunkedArray, width_seconds: int) -> pa.Array:
    """Names of the buckets that some times lie in, null for null; the same rule as events.bucket_of."""
    micros, width = times.cast(pa.int64()), width_seconds * MICROS
    starts, which = np.unique(pc.fill_null(micros, 0).to_numpy() // width, return_inverse=True)
    names = pa.array([bucket_of(int(start) * width, width_seconds) for start in starts], pa.string())
    return names.take(pa.array(which, mask=pc.is_null(micros).to_numpy()))


def _count_bad(records: pa.Table) -> int:
    first = pc.equal(pc.fill_null(records["part"], 0), 0)  # a record too long for one row counts once
    return int(pc.sum(pc.and_(pc.is_valid(records["reason"]), first)).as_py() or 0)


def _as_table(name: str, rows: pa.Table, made: dict[str, Any]) -> pa.Table:
    schema = arrow_schema(BY_NAME[name])
    return pa.table([made[field.name] if field.name in made else rows[field.name] for field in schema], schema=schema)


def _at(ctx: Context, count: int) -> Any:
    return pa.repeat(pa.scalar(ctx.plan.planned_at, pa.timestamp("us", "UTC")), count)


def _span(width_seconds: int, good: pa.Table, time: str, prefix: str) -> dict[str, Any]:
    micros = good[time].cast(pa.int64()).drop_null().to_numpy()
    buckets = pc.unique(buckets_of(good[time], width_seconds).drop_null()).to_pylist()
    minutes = (np.unique(micros // MINUTE) * MINUTE).tolist()
    ends = {"low": int(micros.min()), "high": int(micros.max())} if len(micros) else {"low": None, "high": None}
    return {f"{prefix}{name}": fact for name, fact in (ends | {"buckets": buckets, "minutes": minutes}).items()}
