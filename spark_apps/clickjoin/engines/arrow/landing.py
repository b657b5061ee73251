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
from clickjoin.kernel.arrays import distinct, to_numpy
from clickjoin.kernel.data_file import DataFile
from clickjoin.kernel.land_task import aside, placed
from clickjoin.kernel.parse.lines import only_missing, without_landed
from clickjoin.schemas import BY_NAME, QUARANTINE
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.sources.port import RECORDS_DDL
from clickjoin.spark.session import make_active

if TYPE_CHECKING:
    from clickjoin.engines.arrow.lake import ArrowLake
    from clickjoin.engines.context import Context
    from clickjoin.model.txn import Txn
    from clickjoin.sources.port import Source

_PLACE = ["source_partition", "offset"]


@dataclass(frozen=True)
class Written:
    """Files of a batch's records of one stream that no commit names yet, and facts of them as `placed` names them."""

    good: Sequence[DataFile]
    bad: Sequence[DataFile]
    facts: Mapping[str, Any]


def land(
    lake: ArrowLake, ctx: Context, stream: str, source: Source, written: Written | None = None
) -> dict[str, Any] | None:
    """See Lake.land. The facts hold `records`, where this process has read them, or `aside`: files of bad ones."""
    if written is None and (few := _few(ctx, stream, source)) is not None:
        good, facts = placed(few, ctx.place(stream))
        schema = arrow_schema(BY_NAME[stream])
        mine = lake.append(stream, good.select(schema.names).cast(schema), ctx.plan.txn)
        return facts | {"records": few} if mine else None
    written = written or write_many(lake, ctx, stream, source)
    return {**written.facts, "aside": written.bad} if lake.add(stream, written.good, ctx.plan.txn) else None


def put_aside(lake: ArrowLake, ctx: Context, stream: str, source: Source, facts: Mapping[str, Any], txn: Txn) -> None:
    """See Lake.put_aside.

    After a crash between the two commits the splits are read again, perhaps by another pipeline's file than before:
    what `limits` and `output.strict` say may have changed. What has landed is known, so each record goes to
    `quarantine` that is not among it, and no other. Of a split that cannot be read any more nobody knows which of its
    records were bad: it is on record as lost, as a whole.
    """
    if "aside" in facts:
        lake.add("quarantine", facts["aside"], txn)
    elif lake.delta.latest_txn_version("quarantine", txn.app_id) < txn.version:
        records = facts["records"] if "records" in facts else _not_landed(lake, ctx, stream, source)
        schema, rows = arrow_schema(QUARANTINE), aside(records, ctx.place(stream))
        lake.append(QUARANTINE.name, rows.select(schema.names).cast(schema), txn)


def is_few(ctx: Context, stream: str, source: Source) -> bool:
    """Whether a batch's splits of a stream are so small that this process reads them (`batch.driver_bytes`)."""
    return sum(source.size(split) for split in ctx.plan.splits[stream]) <= ctx.pipeline.batch.driver_bytes


def write_many(lake: ArrowLake, ctx: Context, stream: str, source: Source) -> Written:
    """Have the workers read, place and write the records of a batch's splits; nothing is committed."""
    make_active(lake.spark)  # in a thread for each stream
    each = land_task.land_batches(lake.target(BY_NAME[stream]), lake.target(QUARANTINE), ctx.place(stream))
    spec = ctx.pipeline.spec(stream, ctx.plan.planned)
    rows = source.read_through(lake.spark, ctx.plan.splits[stream], spec, each, "done STRING").collect()
    parts = [json.loads(row["done"]) for row in rows]
    good, bad = ([DataFile(*file) for part in parts for file in part[name]] for name in ("good", "bad"))
    return Written(good, bad, land_task.merged([part["facts"] for part in parts]))


def _few(ctx: Context, stream: str, source: Source) -> pa.Table | None:
    if not is_few(ctx, stream, source):
        return None
    return source.read_here(ctx.plan.splits[stream], ctx.pipeline.spec(stream, ctx.plan.planned))


def _not_landed(lake: ArrowLake, ctx: Context, stream: str, source: Source) -> pa.Table:
    """Those records of the batch's splits that have not landed. Columns: those of RECORDS_DDL."""
    landed = _landed(ctx, stream)
    here = _few(ctx, stream, source)
    if here is not None:
        return without_landed(here, landed)
    spec, splits = ctx.pipeline.spec(stream, ctx.plan.planned), ctx.plan.splits[stream]
    return source.read_through(lake.spark, splits, spec, only_missing(landed), RECORDS_DDL).toArrow()


def _landed(ctx: Context, stream: str) -> dict[str, Any]:
    """Offsets of the records that this batch has landed, sorted, by partition of the source."""
    key = [("batch", "=", ctx.plan.number), ("replica", "=", ctx.plan.replica)]
    rows = ctx.lake.delta.read(stream, key, _PLACE)
    grouped = rows.group_by("source_partition").aggregate([("offset", "list")])
    names, offsets = grouped["source_partition"].to_pylist(), grouped["offset_list"].combine_chunks()
    return {name: distinct(to_numpy(offsets[at].values)) for at, name in enumerate(names)}
