"""Landing by Spark: tasks read and parse the splits, Delta's writer appends what they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from clickjoin.kernel import land_task
from clickjoin.kernel.arrays import distinct, to_numpy
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.parse.lines import only_missing
from clickjoin.schemas import BY_NAME, QUARANTINE, Table
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.sources.port import RECORDS_DDL
from clickjoin.spark.session import make_active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engines.context import Context
    from clickjoin.engines.spark.lake import SparkLake
    from clickjoin.model.txn import Txn
    from clickjoin.sources.port import Source

_PLACE = ["source_partition", "offset"]


def land(lake: SparkLake, ctx: Context, stream: str, source: Source) -> dict[str, Any] | None:
    """See Lake.land. The facts hold `records`, as they were read."""
    make_active(lake.spark)  # in a thread for each stream
    spec = ctx.pipeline.spec(stream, ctx.plan.planned)
    # Kept: a log that is cut short while this goes on must not be read twice, once longer.
    records = source.read(lake.spark, ctx.plan.splits[stream], spec).localCheckpoint(eager=False)
    said = records.mapInArrow(checked(land_task.facts_batches(ctx.place(stream))), "facts STRING").collect()
    facts = land_task.merged([json.loads(row["facts"]) for row in said])
    rows = _rows(ctx, stream, records, BY_NAME[stream], good=True)
    return facts | {"records": records} if lake.commits.append(stream, rows, ctx.plan.txn) else None


def put_aside(lake: SparkLake, ctx: Context, stream: str, source: Source, facts: Mapping[str, Any], txn: Txn) -> None:
    """See Lake.put_aside."""
    if lake.delta.latest_txn_version("quarantine", txn.app_id) >= txn.version:
        return
    records = facts["records"] if "records" in facts else _not_landed(lake, ctx, stream, source)
    lake.commits.append(QUARANTINE.name, _rows(ctx, stream, records, QUARANTINE, good=False), txn)


def _rows(ctx: Context, stream: str, records: DataFrame, table: Table, *, good: bool) -> DataFrame:
    task = land_task.rows_batches(ctx.place(stream), arrow_schema(table), good=good)
    return records.mapInArrow(checked(task), table.ddl)


def _not_landed(lake: SparkLake, ctx: Context, stream: str, source: Source) -> DataFrame:
    """Those records of the batch's splits that have not landed. Columns: those of RECORDS_DDL."""
    key = [("batch", "=", ctx.plan.number), ("replica", "=", ctx.plan.replica)]
    rows = lake.delta.read(stream, key, _PLACE)
    grouped = rows.group_by("source_partition").aggregate([("offset", "list")])
    names, offsets = grouped["source_partition"].to_pylist(), grouped["offset_list"].combine_chunks()
    landed = {name: distinct(to_numpy(offsets[at].values)) for at, name in enumerate(names)}
    spec, splits = ctx.pipeline.spec(stream, ctx.plan.planned), ctx.plan.splits[stream]
    return source.read_through(lake.spark, splits, spec, only_missing(landed), RECORDS_DDL)
