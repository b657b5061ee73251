"""Pending events: which of them wait, and which are due to be tried again (Photon, section 3.2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.batch_context import Context
from clickjoin.event_store.join_input import JoinInput
from clickjoin.event_store.landing import extents
from clickjoin.event_store.lookup import primary_extent
from clickjoin.model.extent import timestamp
from clickjoin.model.ids import EVENT_KEY, moment
from clickjoin.retry.pending import newest, waiting
from clickjoin.retry.vacuumed_version import claimed_before, is_gone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake.spark_reader import SparkReader


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
    ending = row["n"] > 0 and row["attempt"] + 1 >= most
    return Waiting(row["n"], row["due"], moment(row["next"]) if row["next"] else None, ending)


def _due_sql(now: datetime, far: datetime | None) -> str:
    due = f"due_at <= {timestamp(now)}"
    return due if far is None else f"({due} OR due_at > {timestamp(far)})"


def due_events(ctx: Context) -> JoinInput:
    """The events that a retry batch takes up: always the same ones, since the plan names a version of the table.

    Where that version is gone, those that the batch has claimed (see vacuumed_version).
    """
    part = ctx.plan.table
    if part is None:
        raise ValueError("a retry batch without a split of `pending`")
    due = _due_sql(moment(part.due), None if part.far is None else moment(part.far))
    try:
        rows = waiting(ctx.lake, ctx.plan.replica, part.version).where(f"{due} AND {part.where}")
        return _input(ctx, rows.orderBy("due_at", *EVENT_KEY).limit(part.limit))
    except Exception as error:
        if not is_gone(ctx, part, error):
            raise
    return _input(ctx, claimed_before(ctx, waiting(ctx.lake, ctx.plan.replica).where(part.where)))


def _input(ctx: Context, rows: DataFrame) -> JoinInput:
    rows = rows.withColumns({"source_partition": F.lit(""), "offset": F.lit(0)}).localCheckpoint(eager=False)
    own, named = extents(rows, ctx.bucket_seconds)
    return JoinInput(lambda: rows, own, primary_extent(ctx, own, named))
