"""Pending events: which of them wait, and which are due to be tried again (Photon, section 3.2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.context import Context
from clickjoin.event_store.landing import extents
from clickjoin.event_store.lookup import primary_extent
from clickjoin.events import moment
from clickjoin.lake.extent import timestamp

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from clickjoin.joiner.classify import Work
    from clickjoin.lake import Lake

_KEY = ("event_id", "event_time")


@dataclass(frozen=True)
class Waiting:
    """How many events wait in all, how many are due now, and when the next falls due."""

    all: int
    due: int
    next_due: datetime | None


def newest() -> Column:
    """What the newest row of an event in `pending` has most of: round, then attempt, and last that it is resolved."""
    return F.struct("round", "attempt", (F.col("state") == "resolved").alias("done"))


def waiting(lake: Lake, replica: str, version: int | None = None) -> DataFrame:
    """Events of a replica that wait: the newest row of each id, with the record of its first row."""
    rows = lake.read("pending", version).where(F.col("replica") == replica)
    others = [name for name in rows.columns if name not in (*_KEY, "payload")]
    state = rows.groupBy(*_KEY).agg(
        F.max_by(F.struct(*others), newest()).alias("newest"),
        F.min_by("payload", F.struct(F.col("payload").isNull(), "round", "batch")).alias("payload"),
    )
    return state.select(*_KEY, "payload", "newest.*").where("state = 'waiting'")


def look_ahead(lake: Lake, replica: str, version: int, now: datetime) -> Waiting:
    """What there is to retry, as of one version of the table: told from what a state needs, and no records."""
    due = f"due_at <= {timestamp(now)}"
    rows = lake.read("pending", version).where(F.col("replica") == replica)
    states = rows.groupBy(*_KEY).agg(F.max_by(F.struct("state", "due_at"), newest()).alias("newest"))
    row = (
        states.select("newest.*")
        .where("state = 'waiting'")
        .agg(
            F.count(F.lit(1)).alias("n"),
            F.expr(f"count_if({due})").alias("due"),
            F.min(F.unix_micros("due_at")).alias("next"),
        )
        .collect()[0]
    )
    return Waiting(row["n"], row["due"], moment(row["next"]) if row["next"] else None)


def due_work(ctx: Context) -> Work:
    """The events that a retry batch takes up: always the same ones, since the plan names a version of the table."""
    from clickjoin.joiner.classify import Work

    part = ctx.plan.pending
    if part is None:
        raise ValueError("a retry batch without a slice of `pending`")
    due = timestamp(moment(part.due))
    rows = waiting(ctx.lake, ctx.plan.replica, part.version).where(f"due_at <= {due} AND {part.where}")
    rows = rows.orderBy("due_at", *_KEY).limit(part.limit)
    rows = rows.withColumns({"generation": F.lit(""), "offset": F.lit(0)}).localCheckpoint(eager=False)
    own, named = extents(rows, ctx.bucket_seconds)
    return Work(lambda: rows, own, primary_extent(ctx, own, named))
