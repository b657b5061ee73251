"""Taking rows out of the output that should never have been there twice: only on request, and never for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.engines.context import Context
from clickjoin.model import failpoint
from clickjoin.model.errors import CommitConflict
from clickjoin.model.extent import text, timestamp
from clickjoin.model.ids import EPOCH, EVENT_KEY, moment
from clickjoin.spark.rows import ranked
from clickjoin.verification.id_places import with_era

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAME = ("event_id", "_era")
_EXACTLY = ("token", "published_at")
_RUNS = 10
MOST = 1000  # ids at a time; more of them are no accident, and need a person


def remove(ctx: Context, rows: DataFrame) -> dict[str, int]:
    """Keep, of each doubled id, the row that its claim names (else the first published); move the others aside."""
    wanted = rows.orderBy(*EVENT_KEY).limit(MOST).select(*EVENT_KEY)
    key = ["event_id"] if ctx.pipeline.by_id else list(EVENT_KEY)
    known = ctx.lake.read("joined").join(wanted, key, "left_semi")
    names = known.select("event_id", "bucket", "token", F.unix_micros("published_at").alias("published")).distinct()
    found = names.collect()
    if not found:
        return {}
    dates = "event_date" in ctx.lake.delta.table("joined").partitions
    for _ in range(_RUNS):
        version = ctx.lake.delta.version("joined")
        held = ctx.lake.read("joined", version).where(_where(found, dates=dates)).localCheckpoint(eager=False)
        columns = held.columns
        copies = _ranked(ctx, _named(ctx, held))
        moved = copies.where("_nth > 1").select(*_NAME).distinct().count()
        _set_aside(ctx, copies.where("_nth > 1"), columns)
        failpoint.reach("doubles-kept")
        kept = copies.where("_nth = 1").select(*columns).toArrow()
        if ctx.lake.replace_rows("joined", version, held.toArrow(), kept, _EXACTLY, ctx.plan.txn):
            failpoint.reach("doubles-gone")
            return {"doubled": moved} if moved else {}
    raise CommitConflict(
        f"{ctx.lake.delta.path('joined')}: doubled rows were rewritten {_RUNS} times while they were read",
        remedy="Find the OPTIMIZE or MERGE that keeps rewriting them, stop it, and repair again",
    )


def _named(ctx: Context, rows: DataFrame) -> DataFrame:
    """Rows with what names their event beside its id, as column `_era`: its time, or where an id is enough its era."""
    if ctx.pipeline.by_id:
        return with_era(rows, rows, ctx.pipeline.repeats).withColumnRenamed("era", "_era")
    return rows.withColumn("_era", F.col("event_time"))


def _where(found: list[Any], *, dates: bool) -> str:
    """Exactly the rows there are now: one of these ids that is published meanwhile has another time."""
    ids, buckets, tokens = (sorted({row[name] for row in found}) for name in ("event_id", "bucket", "token"))
    times = sorted({row["published"] for row in found})
    days = f"event_date IN ({', '.join(sorted({f'DATE {text(name[:10])}' for name in buckets}))}) AND " if dates else ""
    return (
        f"{days}bucket IN ({_list(buckets)}) AND event_id IN ({_list(ids)}) AND token IN ({_list(tokens)}) "
        f"AND published_at IN ({', '.join(timestamp(moment(time)) for time in times)})"
    )


def _list(values: list[str]) -> str:
    return ", ".join(text(value) for value in values)


def _ranked(ctx: Context, held: DataFrame) -> DataFrame:
    place = [] if ctx.pipeline.by_id else ["bucket"]  # by its id alone an event may be claimed in any bucket
    era = F.lit(EPOCH) if ctx.pipeline.by_id else F.col("event_time")  # the claim of a former event is gone
    claims = ctx.lake.read("registry").select("event_id", era.alias("_era"), F.col("token").alias("claimed_by"), *place)
    claims = claims.join(held.select(*_NAME, *place).distinct(), [*_NAME, *place], "left_semi")
    unique = claims.groupBy(*_NAME).agg(F.min("claimed_by").alias("claimed_by"))
    seen = held.join(unique, list(_NAME), "left")
    by_other = F.coalesce(F.col("claimed_by") != F.col("token"), F.lit(True))
    return ranked(seen, by_other, "published_at", "token", key=_NAME).localCheckpoint(eager=False)


def _set_aside(ctx: Context, rows: DataFrame, columns: list[str]) -> None:
    part = ctx.plan.table
    run = f"{ctx.plan.replica}/{part.due if part else 0}"
    whole = F.to_json(F.struct(*[F.col(f"`{name}`") for name in columns]))
    ctx.lake.append(
        "removed_duplicates",
        rows.withColumns({"row": whole, "run": F.lit(run), "at": F.lit(ctx.plan.planned_at)}),
        ctx.plan.txn,
    )
