"""Pending events: which of them wait, and which are due to be tried again (Photon, section 3.2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from clickjoin.batch_context import Context
from clickjoin.event_store.join_input import JoinInput
from clickjoin.event_store.landing import extents, extents_of
from clickjoin.event_store.lookup import primary_extent
from clickjoin.kernel import data_skipping
from clickjoin.kernel.arrays import mask, where
from clickjoin.model.extent import timestamp
from clickjoin.model.ids import EVENT_KEY, MICROS, moment
from clickjoin.retry.pending import OWNED, newest, newest_rows, waiting
from clickjoin.retry.vacuumed_version import claimed_before, is_gone
from clickjoin.schemas import PENDING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.lake.spark_reader import SparkReader
    from clickjoin.model.batch_plan import TableSplit

_TIME = pa.timestamp("us", "UTC")
_ROWS_HERE = 1_000_000  # of some hundred bytes each, without records
# Events that wait, how many are due, when the first is (microseconds), and how often one has been tried at most.
_Ahead = tuple[int, int, int | None, int | None]


@dataclass(frozen=True)
class Waiting:
    """How many events wait in all, how many are due now, and when the next falls due.

    `ending`: whether the next try of one may be its last.
    """

    all: int
    due: int
    next_due: datetime | None
    ending: bool = False


def look_ahead(
    lake: SparkReader, replica: str, version: int, now: datetime, far: datetime | None = None, most: int = 0
) -> Waiting:
    """What there is to retry, as of one version of the table: derived from the columns of a state, without records.

    `far`: what falls due after it is due now; `most`: tries after which an event may be given up.
    """
    here = lake.delta.rows("pending") <= _ROWS_HERE
    found = _ahead_here(lake.delta, replica, now, far) if here else _ahead(lake, replica, version, now, far)
    count, due, first, attempt = found
    return Waiting(count, due, None if first is None else moment(first), count > 0 and (attempt or 0) + 1 >= most)


def _ahead_here(delta: DeltaReader, replica: str, now: datetime, far: datetime | None) -> _Ahead:
    """The same as `_ahead` of few rows, as of the newest version, without a job of Spark."""
    columns = [*OWNED, "round", "state", "due_at", "attempt", "batch"]
    rows = newest_rows(delta.read("pending", [("replica", "=", replica)], columns))
    rows = rows.filter(pc.equal(rows["state"], "waiting"))
    at = rows["due_at"].cast(_TIME).cast(pa.int64()).to_numpy()
    if not len(at):
        return 0, 0, None, None
    last = int(now.timestamp() * MICROS)
    put_off = at > int(far.timestamp() * MICROS) if far else np.zeros(len(at), np.bool_)
    first = int(np.where(put_off, last, at).min())
    return len(at), int(((at <= last) | put_off).sum()), first, pc.max(rows["attempt"]).as_py()


def _ahead(lake: SparkReader, replica: str, version: int, now: datetime, far: datetime | None) -> _Ahead:
    rows = lake.read("pending", version).where(F.col("replica") == replica)
    states = rows.groupBy(*EVENT_KEY).agg(F.max_by(F.struct("state", "due_at", "attempt"), newest()).alias("newest"))
    put_off = (
        F.col("due_at") if far is None else F.when(F.col("due_at") > F.lit(far), F.lit(now)).otherwise(F.col("due_at"))
    )
    row = (
        states.select("newest.*")
        .where("state = 'waiting'")
        .agg(
            F.count(F.lit(1)).alias("n"),
            F.expr(f"count_if({_due_sql(now, far)})").alias("due"),
            F.min(F.unix_micros(put_off)).alias("next"),
            F.max("attempt").alias("attempt"),
        )
        .collect()[0]
    )
    return row["n"], row["due"], row["next"], row["attempt"]


def _due_sql(now: datetime, far: datetime | None) -> str:
    due = f"due_at <= {timestamp(now)}"
    return due if far is None else f"({due} OR due_at > {timestamp(far)})"


def due_events(ctx: Context, *, here: bool = False) -> JoinInput:
    """The events that a retry batch takes up: always the same ones, since the plan names a version of the table.

    Where that version is gone, those that the batch has claimed (see vacuumed_version). `here`: this process may choose
    them, where they are few.
    """
    part = ctx.plan.table
    if part is None:
        raise ValueError("a retry batch without a split of `pending`")
    try:
        return (_chosen_here(ctx, part) if here else None) or _input(ctx, _due_rows(ctx, part))
    except Exception as error:
        if not is_gone(ctx, part, error):
            raise
    return _input(ctx, claimed_before(ctx, waiting(ctx.lake, ctx.plan.replica).where(part.where)))


def _due_rows(ctx: Context, part: TableSplit) -> DataFrame:
    due = _due_sql(moment(part.due), None if part.far is None else moment(part.far))
    rows = waiting(ctx.lake, ctx.plan.replica, part.version).where(f"{due} AND {part.where}")
    return rows.orderBy("due_at", *EVENT_KEY).limit(part.limit)


def _chosen_here(ctx: Context, part: TableSplit) -> JoinInput | None:
    """The same without a job of Spark, and without records; None where the table has too many rows."""
    delta = ctx.lake.delta
    files = delta.files_at("pending", part.version)
    if data_skipping.rows(files) > _ROWS_HERE:
        return None
    columns = [name for name in PENDING.names if name != "payload"]
    rows = newest_rows(delta.read_at("pending", part.version, [("replica", "=", ctx.plan.replica)], columns))
    rows = where(rows, mask(pc.equal(rows["state"], "waiting")) & _is_due(rows, part))
    order = [(name, "ascending") for name in ("due_at", *EVENT_KEY)]
    rows = rows.sort_by(order).slice(0, part.limit)
    own, named = extents_of(rows, ctx.bucket_seconds)
    return JoinInput(
        lambda: _held(_due_rows(ctx, part)),
        own,
        primary_extent(ctx, own, named),
        rows,
        data_skipping.within(files, own),
    )


def _is_due(rows: pa.Table, part: TableSplit) -> np.ndarray[Any, Any]:
    due, at = (rows[name].cast(_TIME).cast(pa.int64()).fill_null(0).to_numpy() for name in ("due_at", "event_time"))
    found: np.ndarray[Any, Any] = due <= part.due
    if part.far is not None:
        found |= due > part.far
    if part.since is not None:
        found &= at >= part.since
    if part.until is not None:
        found &= at < part.until
    return found


def _input(ctx: Context, rows: DataFrame) -> JoinInput:
    rows = _held(rows)
    own, named = extents(rows, ctx.bucket_seconds)
    return JoinInput(lambda: rows, own, primary_extent(ctx, own, named))


def _held(rows: DataFrame) -> DataFrame:
    return rows.withColumns({"source_partition": F.lit(""), "offset": F.lit(0)}).localCheckpoint(eager=False)
