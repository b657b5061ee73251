"""What a batch works from when the version of the table that its plan names cannot be read any more.

Somebody has vacuumed by hand, or with a clock that was ahead, or the batch lay still for longer than the log is kept.
It is settled all the same, from the newest version, with what it has done already and nothing else, so that it does
not matter which rows the lost version held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.event_store.landing import extents
from clickjoin.lake.vacuum import is_whole
from clickjoin.model.errors import VersionGone
from clickjoin.model.ids import EVENT_KEY
from clickjoin.spark.failures import translate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.batch_context import Context
    from clickjoin.model.batch_plan import TableSplit


def is_gone(ctx: Context, part: TableSplit, error: Exception) -> bool:
    """Whether reading a plan's rows failed because a version that it names is gone."""
    delta = ctx.lake.delta
    if isinstance(translate(error), VersionGone):
        return True
    return not all(is_whole(delta, *named) for named in part.versions.items())


def claimed_before(ctx: Context, waiting: DataFrame) -> DataFrame:
    """Of a retry batch: those of the events that wait which it has claimed. It claims no more.

    Its other events are due as before: the next batch takes them up. Of one whose states are written nothing is left.
    """
    # First, so that no copy that still holds the lost rows claims one of them after this look.
    ctx.lake.commit_txn_only("registry", ctx.plan.txn)
    if _has_states(ctx):
        return waiting.limit(0)
    rows = waiting.localCheckpoint(eager=False)
    own, _ = extents(rows, ctx.bucket_seconds)
    claims = ctx.lake.read_named("registry", own, rows.select(*EVENT_KEY)).where(F.col("token") == ctx.plan.token)
    return rows.join(claims.select(*EVENT_KEY), list(EVENT_KEY), "left_semi")


def given_up(ctx: Context, part: TableSplit) -> DataFrame:
    """Of a redrive batch: all that was given up in its range, if it has sent nothing round yet; else what it has sent.

    All, since of any it may have taken the claim back already; one whose primary is missing is given up once more.
    """
    rows = ctx.lake.read("unjoinable").where(F.col("replica") == ctx.plan.replica).where(part.where)
    return sent(ctx, rows) if _has_states(ctx) else rows


def sent(ctx: Context, rows: DataFrame) -> DataFrame:
    """Those of some given-up rows that wait again because of this very batch."""
    states = ctx.lake.read("pending").where((F.col("replica") == ctx.plan.replica) & (F.col("sequence") == "redrive"))
    return rows.join(states.where(F.col("batch") == ctx.plan.number).select(*EVENT_KEY), list(EVENT_KEY), "left_semi")


def _has_states(ctx: Context) -> bool:
    return ctx.lake.delta.latest_txn_version("pending", ctx.plan.txn.app_id) >= ctx.plan.number
