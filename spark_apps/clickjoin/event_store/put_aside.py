"""Bad records of a batch that crashed between the commit of its good records and that of its bad ones.

Its splits are read again, perhaps by another pipeline's file than before: what `limits` and `output.strict` say may
have changed. What has landed is known, so each record goes to `quarantine` that is not among it, and no other. Of a
split that cannot be read any more nobody knows which of its records were bad: it is on record as lost, as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from clickjoin.batch_context import Context
from clickjoin.event_store import land_arrow
from clickjoin.kernel.arrays import bool_array
from clickjoin.kernel.forgotten import NOTHING, WHY
from clickjoin.kernel.parse.lines import RAW_PART
from clickjoin.kernel.parse.reasons import REASONS
from clickjoin.model.txn import Txn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHANGED, LOST = "settings-changed", "source-lost"
_PLACE = ["source_partition", "offset"]


def append_few(ctx: Context, stream: str, records: pa.Table, txn: Txn) -> None:
    """Those of some records, read again, that have not landed. Columns in: those of RECORDS_DDL."""
    key = [("batch", "=", ctx.plan.number), ("replica", "=", ctx.plan.replica)]
    landed = ctx.lake.delta.read(stream, key, _PLACE)
    there = set(zip(*(landed[name].to_pylist() for name in _PLACE), strict=True))
    columns = ("reason", "source_partition", "offset", "part")
    rows = zip(*(records[name].to_pylist() for name in columns), strict=True)
    left = [reason == LOST or (part, at - (no or 0) * RAW_PART) not in there for reason, part, at, no in rows]
    rest = records.filter(bool_array(np.array(left, np.bool_)))
    good = pc.is_null(rest["reason"])
    raw = pc.coalesce(rest["raw"], rest["payload"].cast(rest["raw"].type))
    for name, value in (("raw", raw), ("reason", CHANGED), ("detail", REASONS[CHANGED])):
        column = value if name == "raw" else pc.if_else(good, pa.scalar(value, rest[name].type), rest[name])
        rest = rest.set_column(rest.schema.get_field_index(name), name, column)
    land_arrow.append_bad(ctx, stream, rest, txn)


def append_many(ctx: Context, stream: str, records: DataFrame, txn: Txn) -> None:
    """The same by Spark."""
    own = ctx.lake.read(stream)
    own = own.where((F.col("batch") == ctx.plan.number) & (F.col("replica") == ctx.plan.replica)).select(*_PLACE)
    good = F.col("reason").isNull()
    own = own.withColumnRenamed("offset", "begin").withColumn("landed", F.lit(True))
    begin = F.col("offset") - F.coalesce("part", F.lit(0)) * F.lit(RAW_PART)
    known = records.withColumn("begin", begin).join(own, ["source_partition", "begin"], "left")
    bad = known.where(F.col("landed").isNull() | (F.col("reason") == LOST)).drop("landed", "begin")
    named = {
        "raw": F.coalesce("raw", F.encode("payload", "UTF-8")),
        "reason": F.when(good, CHANGED).otherwise(F.col("reason")),
        "detail": F.when(good, REASONS[CHANGED]).otherwise(F.col("detail")),
        "stream": F.lit(stream),
        "batch": F.lit(ctx.plan.number).cast("bigint"),
        "replica": F.lit(ctx.plan.replica),
        "at": F.lit(ctx.plan.planned_at),
    }
    ctx.lake.append("quarantine", _without_bytes(ctx, stream, bad.withColumns(named)), txn)


def _without_bytes(ctx: Context, stream: str, bad: DataFrame) -> DataFrame:
    """Bad records, those that were forgotten without their bytes; see kernel.forgotten."""
    known = sorted(ctx.forgotten.get(stream, NOTHING).digests)
    if not known:
        return bad
    gone = F.coalesce(F.sha2("raw", 256).isin(known), F.lit(False))
    return bad.withColumns({"detail": F.when(gone, WHY).otherwise(F.col("detail")), "raw": F.when(~gone, F.col("raw"))})
