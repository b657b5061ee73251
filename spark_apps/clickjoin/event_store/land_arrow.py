"""Landing a batch's records: few by this process, many by Spark's tasks. Either way Arrow parses and writes them.

The same rows in the same tables under the same transactions, so a replay may take the other way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.kernel import land_task
from clickjoin.kernel.data_file import DataFile
from clickjoin.kernel.forgotten import NOTHING
from clickjoin.kernel.land_task import Place, aside, placed
from clickjoin.model.ids import MICROS
from clickjoin.model.txn import Txn
from clickjoin.schemas import BY_NAME, QUARANTINE
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.spark.session import make_active

if TYPE_CHECKING:
    from clickjoin.batch_context import Context
    from clickjoin.sources.port import Source


@dataclass(frozen=True)
class Written:
    """Files of a batch's records of one stream that no commit names yet, and facts of them as `placed` names them."""

    good: Sequence[DataFile]
    bad: Sequence[DataFile]
    facts: Mapping[str, Any]


def append_good(ctx: Context, stream: str, records: pa.Table) -> dict[str, Any] | None:
    """Append the good records to their stream's table; returns facts as `placed` names them.

    None where another copy of the batch has landed: it may have found other records. Columns in: those of RECORDS_DDL.
    """
    good, facts = placed(records, _place(ctx, stream))
    schema = arrow_schema(BY_NAME[stream])
    return facts if ctx.lake.append(stream, good.select(schema.names).cast(schema), ctx.plan.txn) else None


def landed(ctx: Context, stream: str, records: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows for a stream's table, and for `quarantine`, as a batch would land them. Columns in: those of RECORDS_DDL."""
    place = _place(ctx, stream)
    return placed(records, place)[0], aside(records, place)


def write_many(ctx: Context, stream: str, source: Source) -> Written:
    """Have the workers read, place and write the records of a batch's splits; nothing is committed."""
    make_active(ctx.lake.spark)  # in a thread for each stream
    each = land_task.land_batches(ctx.lake.target(BY_NAME[stream]), ctx.lake.target(QUARANTINE), _place(ctx, stream))
    spec = ctx.pipeline.spec(stream, ctx.plan.planned)
    rows = source.read_through(ctx.lake.spark, ctx.plan.splits[stream], spec, each, "done STRING").collect()
    parts = [json.loads(row["done"]) for row in rows]
    good, bad = ([DataFile(*file) for part in parts for file in part[name]] for name in ("good", "bad"))
    return Written(good, bad, land_task.merged([part["facts"] for part in parts]))


def append_written(ctx: Context, stream: str, written: Written) -> dict[str, Any] | None:
    """Commit the good records that workers have written.

    Returns facts as append_good does, and `aside`: the files of bad records, not committed yet.
    """
    return {**written.facts, "aside": written.bad} if ctx.lake.add(stream, written.good, ctx.plan.txn) else None


def append_bad(ctx: Context, stream: str, records: pa.Table, txn: Txn) -> None:
    """Put the bad records aside. Columns in: those of RECORDS_DDL."""
    schema = arrow_schema(QUARANTINE)
    rows = aside(records, _place(ctx, stream))
    ctx.lake.append(QUARANTINE.name, rows.select(schema.names).cast(schema), txn)


def _place(ctx: Context, stream: str) -> Place:
    since, counts = ctx.timeline.steps
    at = round(ctx.plan.planned_at.timestamp() * MICROS)
    forgotten = ctx.forgotten.get(stream, NOTHING)
    return Place(ctx.bucket_seconds, since, counts, ctx.plan.number, ctx.plan.replica, at, stream, forgotten)
