"""What a batch works from when the version of the table that its plan names cannot be read any more.

Someone has vacuumed by hand, or with a clock that was ahead, or the batch lay still for longer than the log is kept.
It is settled anyway, from the newest version, with what it has done already and nothing else, so that it does
not matter which rows the lost version held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from clickjoin.engines.extents import extents_of
from clickjoin.kernel import data_skipping
from clickjoin.kernel.arrays import distinct, where
from clickjoin.kernel.data_skipping import EVER
from clickjoin.kernel.event_key import found_among, micros
from clickjoin.kernel.parquet_rows import KEYS, Files, TimeRanges
from clickjoin.lake.vacuum import is_whole
from clickjoin.model.errors import VersionGone
from clickjoin.model.ids import EVENT_KEY
from clickjoin.retry.pending import waiting_rows
from clickjoin.schemas import PENDING
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.spark.failures import translate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engines.context import Context
    from clickjoin.model.batch_plan import TableSplit

_CLAIM = pa.schema([*KEYS, ("token", pa.string())])


def in_range(rows: pa.Table, part: TableSplit) -> np.ndarray[Any, Any]:
    """Which events lie in the range of event time that a plan names."""
    at = micros(rows)
    low, high = (-EVER if part.since is None else part.since, EVER if part.until is None else part.until)
    found: np.ndarray[Any, Any] = (at >= low) & (at < high)
    return found


def is_gone(ctx: Context, part: TableSplit, error: Exception) -> bool:
    """Whether reading a plan's rows failed because a version that it names is gone."""
    delta = ctx.lake.delta
    if isinstance(translate(error), VersionGone):
        return True
    return not all(is_whole(delta, *named) for named in part.versions.items())


def claimed_before(ctx: Context, part: TableSplit, columns: Sequence[str]) -> pa.Table:
    """Of a retry batch: those of the events that wait which it has claimed. It claims no more.

    Its other events are due as before: the next batch takes them up. Of one whose states are written nothing is left.
    """
    # First, so that no copy that still holds the lost rows claims one of them after this look.
    ctx.lake.delta.commit_txn_only("registry", ctx.plan.txn)
    delta = ctx.lake.delta
    there = waiting_rows(delta, delta.version("pending"), ctx.plan.replica, columns)
    none = arrow_schema(PENDING).empty_table().select(list(columns))
    if _has_states(ctx):
        return none
    found = [where(rows, in_range(rows, part) & _is_own(ctx, rows)) for rows in there]
    return pa.concat_tables([none, *(rows.select(none.column_names).cast(none.schema) for rows in found)])


def _is_own(ctx: Context, rows: pa.Table) -> np.ndarray[Any, Any]:
    """Which events this batch has claimed: a claim lies at its event's own time."""
    files = data_skipping.within(ctx.lake.delta.files("registry"), extents_of(rows, ctx.bucket_seconds)[0])
    held = Files(ctx.lake.delta.path("registry"), tuple(data_skipping.paths(files)), data_skipping.ends(files))
    claims = held.rows(rows["event_id"], TimeRanges(distinct(micros(rows))), _CLAIM)
    return found_among(rows, claims.filter(pc.equal(claims["token"], ctx.plan.token)))


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
