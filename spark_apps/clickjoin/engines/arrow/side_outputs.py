"""Publishing: every event of a batch goes to the table of its status, each table by one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import where
from clickjoin.kernel.event_key import found_among, lie_before
from clickjoin.kernel.resolving import rows_of_batch
from clickjoin.model.ids import EVENT_KEY, micros_of
from clickjoin.schemas import EXPIRED
from clickjoin.schemas.arrow import arrow_schema

if TYPE_CHECKING:
    from clickjoin.engines.arrow.lake import ArrowLake
    from clickjoin.engines.context import Context
    from clickjoin.engines.port import Outcome
    from clickjoin.model.shards import Boundary


def publish(lake: ArrowLake, ctx: Context, outcome: Outcome) -> None:
    """See Lake.publish."""
    if outcome.count("joined"):
        lake.add("joined", outcome.rows.of("joined"), ctx.plan.txn)


def write_side_outputs(
    lake: ArrowLake, ctx: Context, outcome: Outcome, boundary: Callable[[], Boundary]
) -> Mapping[str, int]:
    """See Lake.write_side_outputs."""
    for status in ("filtered", "unjoinable"):
        _append(lake, ctx, outcome, status)
    if ctx.plan.table is None and not outcome.count("pending", "expired"):
        return {}
    if lake.add("pending", outcome.rows.of("pending"), ctx.plan.txn):
        _append(lake, ctx, outcome, "expired")
        return {}
    expired = _expired_as_committed(lake, ctx, outcome.rows.left(), boundary())
    if expired.num_rows:
        schema = arrow_schema(EXPIRED)
        lake.append("expired", rows_of_batch(schema, expired, ctx.plan).cast(schema), ctx.plan.txn)
    return {"expired": expired.num_rows, "pending": outcome.count("pending", "expired") - expired.num_rows}


def _append(lake: ArrowLake, ctx: Context, outcome: Outcome, status: str) -> None:
    if files := outcome.rows.of(status):
        lake.add(status, files, ctx.plan.txn)


def _expired_as_committed(lake: ArrowLake, ctx: Context, left: pa.Table, boundary: Boundary) -> pa.Table:
    """Events that neither joined nor wait by the batch's own commit to `pending`, and expired.

    The boundary is read again: anyone who has committed may have seen a newer one than this run.
    """
    plan = ctx.plan
    own = {"replica": plan.replica, "sequence": plan.sequence, "batch": plan.number}
    keys = [*EVENT_KEY, "state"]
    states = lake.delta.read("pending", [(name, "=", value) for name, value in own.items()], keys)
    waits = states.filter(pc.equal(states["state"], "waiting"))
    at = {shard: micros_of(moment_) for shard, moment_ in boundary.items()}
    return where(left, lie_before(left, at) & ~found_among(left, waits))
