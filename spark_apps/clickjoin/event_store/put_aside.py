"""Bad records of a batch that crashed between the commit of its good records and that of its bad ones.

Its splits are read again, perhaps by another pipeline's file than before: what `limits` and `output.strict` say may
have changed. What has landed is known, so each record goes to `quarantine` that is not among it, and no other. Of a
split that cannot be read any more nobody knows which of its records were bad: it is on record as lost, as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.event_store import land_arrow
from clickjoin.kernel.arrays import distinct, to_numpy
from clickjoin.kernel.not_landed import only_missing, without_landed
from clickjoin.model.txn import Txn
from clickjoin.sources.port import RECORDS_DDL

if TYPE_CHECKING:
    from clickjoin.batch_context import Context
    from clickjoin.sources.port import Source

_PLACE = ["source_partition", "offset"]


def append_bad_again(ctx: Context, stream: str, source: Source, here: pa.Table | None, txn: Txn) -> None:
    """Put aside those records of the batch's splits that have not landed.

    `here`: the records, where this process reads them. Columns: those of RECORDS_DDL.
    """
    landed = _landed(ctx, stream)
    if here is not None:
        missing = without_landed(here, landed)
    else:
        spec, splits = ctx.pipeline.spec(stream, ctx.plan.planned), ctx.plan.splits[stream]
        rows: Any = source.read_through(ctx.lake.spark, splits, spec, only_missing(landed), RECORDS_DDL).toArrow()
        missing = rows
    land_arrow.append_bad(ctx, stream, missing, txn)


def _landed(ctx: Context, stream: str) -> dict[str, Any]:
    """Offsets of the records that this batch has landed, sorted, by partition of the source."""
    key = [("batch", "=", ctx.plan.number), ("replica", "=", ctx.plan.replica)]
    rows = ctx.lake.delta.read(stream, key, _PLACE)
    grouped = rows.group_by("source_partition").aggregate([("offset", "list")])
    names, offsets = grouped["source_partition"].to_pylist(), grouped["offset_list"].combine_chunks()
    return {name: distinct(to_numpy(offsets[at].values)) for at, name in enumerate(names)}
