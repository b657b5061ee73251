"""Side outputs: every event of a batch that did not join goes to the table of its status."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.batch_context import Context
from clickjoin.joiner.port import Outcome
from clickjoin.kernel.arrays import where
from clickjoin.kernel.event_key import found_among, lie_before
from clickjoin.kernel.resolving import rows_of_batch
from clickjoin.model.ids import EVENT_KEY, micros_of
from clickjoin.registry.boundary import load_boundary
from clickjoin.schemas import EXPIRED
from clickjoin.schemas.arrow import arrow_schema


def write_side_outputs(ctx: Context, outcome: Outcome) -> Mapping[str, int]:
    """Append what did not join to the table of its status, each in one commit.

    Returns counts by status where they are other than the outcome's.

    Which events wait is fixed by the commit to `pending`, before that to `expired`: the boundary moves on while a batch
    lies still, and a later run, or another copy, would call expired what an earlier one has put into `pending`, or lose
    what that one was about to call expired.
    """
    for status in ("filtered", "unjoinable"):
        _append(ctx, outcome, status)
    if ctx.plan.table is None and not outcome.count("pending", "expired"):
        return {}
    if ctx.lake.delta.add("pending", outcome.files_of("pending"), ctx.plan.txn):
        _append(ctx, outcome, "expired")
        return {}
    expired = _expired_as_committed(ctx, outcome.left())
    if expired.num_rows:
        schema = arrow_schema(EXPIRED)
        ctx.lake.delta.append_table("expired", rows_of_batch(schema, expired, ctx.plan).cast(schema), ctx.plan.txn)
    return {"expired": expired.num_rows, "pending": outcome.count("pending", "expired") - expired.num_rows}


def _append(ctx: Context, outcome: Outcome, status: str) -> None:
    if files := outcome.files_of(status):
        ctx.lake.delta.add(status, files, ctx.plan.txn)


def _expired_as_committed(ctx: Context, left: pa.Table) -> pa.Table:
    """Events that neither joined nor wait by the batch's own commit to `pending`, and expired.

    The boundary is read again: whoever has committed may have seen a newer one than this run.
    """
    plan = ctx.plan
    own = {"replica": plan.replica, "sequence": plan.sequence, "batch": plan.number}
    keys = [*EVENT_KEY, "state"]
    states = ctx.lake.delta.read("pending", [(name, "=", value) for name, value in own.items()], keys)
    waits = states.filter(pc.equal(states["state"], "waiting"))
    boundary = {shard: micros_of(at) for shard, at in load_boundary(ctx.lake.delta).items()}
    return where(left, lie_before(left, boundary) & ~found_among(left, waits))
