"""Landing a batch's records: few by this process, many by Spark's workers. Either way Arrow parses and writes them.

The same rows in the same tables under the same transactions, so a replay may take the other way.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin import arrays, events
from clickjoin.arrays import texts
from clickjoin.event_store import placing
from clickjoin.event_store.placing import Place, aside, placed
from clickjoin.events import MICROS
from clickjoin.lake import Txn, durable, written
from clickjoin.lake.types import arrow_schema
from clickjoin.lake.written import Target, Written
from clickjoin.tables import BY_NAME, QUARANTINE
from clickjoin.travel import carry

if TYPE_CHECKING:
    from clickjoin.context import Context
    from clickjoin.sources.base import Source, Work

_FLUSH = 64 << 20  # bytes of records that a worker holds before it writes a file for each bucket


def append_good(ctx: Context, stream: str, records: pa.Table) -> dict[str, Any]:
    """Append the good records to their stream's table; returns facts as `placed` names them.

    Columns in: those of RECORDS_DDL.
    """
    good, facts = placed(records, _place(ctx, stream))
    schema = arrow_schema(BY_NAME[stream])
    ctx.lake.append(stream, good.select(schema.names).cast(schema), ctx.plan.txn)
    return facts


def landed(ctx: Context, stream: str, records: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows for a stream's table, and for `quarantine`, as a batch would land them. Columns in: those of RECORDS_DDL."""
    place = _place(ctx, stream)
    return placed(records, place)[0], aside(records, place)


def append_many(ctx: Context, stream: str, source: Source) -> dict[str, Any]:
    """Have the workers read, place and write the records of a batch's slices, and commit the good ones.

    Returns facts as append_good does, and `aside`: the files of bad records, not committed yet.
    """
    carry(sys.modules[__name__], arrays, events, placing, written, durable)
    each = _lander(ctx.lake.target(BY_NAME[stream]), ctx.lake.target(QUARANTINE), _place(ctx, stream))
    spec = ctx.pipeline.spec(stream, ctx.plan.planned)
    rows = source.read_through(ctx.lake.spark, ctx.plan.slices[stream], spec, each, "done STRING").collect()
    parts = [json.loads(row["done"]) for row in rows]
    good, bad = ([Written(*file) for part in parts for file in part[name]] for name in ("good", "bad"))
    ctx.lake.add(stream, good, ctx.plan.txn)
    return placing.merged([part["facts"] for part in parts]) | {"aside": bad}


def _lander(target: Target, quarantine: Target, place: Place) -> Work:
    def land(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for held in _gathered(batches):
            records = pa.Table.from_batches(held)
            good, facts = placed(records, place)
            files = {"good": written.write(target, good), "bad": written.write(quarantine, aside(records, place))}
            done = json.dumps(files | {"facts": facts})
            yield pa.RecordBatch.from_arrays([texts([done], pa.string())], ["done"])

    return land


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > _FLUSH:
            yield held
            held, size = [], 0
    if held:
        yield held


def append_bad(ctx: Context, stream: str, records: pa.Table, txn: Txn) -> None:
    """Put the bad records aside. Columns in: those of RECORDS_DDL."""
    schema = arrow_schema(QUARANTINE)
    rows = aside(records, _place(ctx, stream))
    ctx.lake.append(QUARANTINE.name, rows.select(schema.names).cast(schema), txn)


def _place(ctx: Context, stream: str) -> Place:
    since, counts = ctx.timeline.steps
    at = round(ctx.plan.planned_at.timestamp() * MICROS)
    return Place(ctx.bucket_seconds, since, counts, ctx.plan.number, ctx.plan.replica, at, stream)
