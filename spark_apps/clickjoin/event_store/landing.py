"""Landing: the splits are parsed once; good records go to their stream's table, bad ones to quarantine.

Both commits carry the batch's number, so a replay is skipped; later steps read what has landed, never the logs again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.engines.context import Context
from clickjoin.engines.port import Ahead, JoinInput
from clickjoin.event_store.lookup import primary_extent
from clickjoin.forgotten.known import not_to_land
from clickjoin.kernel.land_task import span_of
from clickjoin.model.extent import MINUTE, Extent, minutes_of
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.split import Split
from clickjoin.model.txn import Txn
from clickjoin.sources.port import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Landed:
    """What a batch has landed of one stream: its rows' extent, that of the primary events they name, bad records."""

    own: Extent
    named: Extent
    lost: tuple[Split, ...] = ()
    bad: int = 0


def bucket_sql(column: str, width_seconds: int) -> str:
    """The bucket of a time column, as Spark SQL; the same rule as ids.bucket_of."""
    width = width_seconds * MICROS
    return (
        f"date_format(timestamp_micros(unix_micros({column}) - pmod(unix_micros({column}), {width})), "
        "\"yyyy-MM-dd'T'HHmm'Z'\")"
    )


def minute_sql(column: str) -> str:
    """The minute that a time lies in, by its first microsecond since 1970, as Spark SQL."""
    return f"unix_micros({column}) - pmod(unix_micros({column}), {MINUTE})"


def land(ctx: Context, sources: Mapping[str, Source], ahead: Ahead | None = None) -> dict[str, Landed]:
    """Land all streams of a batch, side by side. Returns what has landed, by stream. `ahead`: see Lake.land_ahead."""
    streams = [item.name for item in ctx.pipeline.inputs if ctx.plan.splits.get(item.name)]
    # After the plan was written: whoever forgets events later sees this batch as unsettled, and waits.
    with ctx.lake.delta.looked_at("forgotten", *streams):
        ctx.forgotten = not_to_land(ctx.lake.delta, by_id=ctx.pipeline.by_id)
        newest = {stream: ctx.lake.delta.latest_txn_version(stream, ctx.plan.txn.app_id) for stream in streams}
    done = {stream: version >= ctx.plan.number for stream, version in newest.items()}
    lost = {s: () if done[s] else _lost(sources[s], ctx.plan.splits[s]) for s in streams}
    written = ahead.of(ctx) if ahead and not any(lost.values()) else {}
    with ThreadPoolExecutor(max_workers=max(len(streams), 1)) as pool:
        jobs = {s: pool.submit(ctx.lake.land, ctx, s, sources[s], written.get(s)) for s in streams if not done[s]}
        seen = {s: jobs[s].result() if s in jobs else None for s in streams}
    landed = {}
    for stream, facts in seen.items():
        mine, facts = facts is not None, facts or _measure(ctx, stream)
        bad = _quarantine(ctx, stream, sources[stream], facts)
        ctx.lake.delta.commit_txn_only(stream, ctx.plan.txn)
        landed[stream] = _landed(facts, lost[stream] if mine else _lost_before(ctx, stream), bad)
    ctx.counts["quarantined"] = sum(part.bad for part in landed.values())
    return landed


def _lost(source: Source, splits: Sequence[Split]) -> tuple[Split, ...]:
    gone = source.lost(splits)
    return tuple(split for split in splits if split.partition in gone)


def _lost_before(ctx: Context, stream: str) -> tuple[Split, ...]:
    """Splits that are on record as lost, of a batch that landed before a crash."""
    rows = own_quarantine(ctx, stream, ["source_partition"], reason="source-lost")
    gone = set(rows["source_partition"].to_pylist())
    return tuple(split for split in ctx.plan.splits[stream] if split.partition in gone)


def own_quarantine(ctx: Context, stream: str, columns: Sequence[str], **more: str) -> Any:
    """Rows of table `quarantine` that this batch has written of a stream, as Arrow."""
    key = {"batch": ctx.plan.number, "replica": ctx.plan.replica, "stream": stream, **more}
    return ctx.lake.delta.read("quarantine", [(name, "=", value) for name, value in key.items()], columns)


def _measure(ctx: Context, stream: str) -> dict[str, Any]:
    """The same facts from the table, for a batch that had landed before. Bad records are then unknown: -1."""
    key = [("batch", "=", ctx.plan.number), ("replica", "=", ctx.plan.replica)]
    named = ["primary_time"] if stream == "foreign" else []
    rows = ctx.lake.delta.read(stream, key, ["event_time", "bucket", *named])
    facts = {"good": rows.num_rows, "bad": -1} | span_of(ctx.bucket_seconds, rows, "event_time", "")
    return facts | (span_of(ctx.bucket_seconds, rows, "primary_time", "named_") if named else {})


def _quarantine(ctx: Context, stream: str, source: Source, facts: Mapping[str, Any]) -> int:
    """Put the batch's bad records of a stream aside; returns how many lie there, whichever copy has put them there."""
    if facts["bad"] == 0:
        return 0
    own = Txn(f"{ctx.plan.txn.app_id}/{stream}", ctx.plan.txn.version)
    ctx.lake.put_aside(ctx, stream, source, facts, own)
    parts = own_quarantine(ctx, stream, ["part"]).to_pylist()
    return sum(1 for row in parts if not row["part"])  # a record too long for one row counts once


def _landed(facts: Mapping[str, Any], lost: tuple[Split, ...], bad: int) -> Landed:
    return Landed(extent_of(facts), extent_of(facts, "named_"), lost, bad)


def extent_of(facts: Mapping[str, Any], prefix: str = "") -> Extent:
    """The extent that aggregates `good`, `low`, `high`, `minutes` (microseconds) and `buckets` describe."""
    buckets = facts.get(f"{prefix}buckets") or ()
    if not buckets:
        return Extent(0)
    low, high = moment(facts[f"{prefix}low"]), moment(facts[f"{prefix}high"])
    minutes = minutes_of(start // MINUTE for start in facts.get(f"{prefix}minutes") or ())
    return Extent(facts["good"], tuple(buckets), low, high, minutes)


def _extent_facts(time: str = "event_time", bucket: str = "bucket", prefix: str = "") -> list[Column]:
    return [
        F.collect_set(F.expr(bucket)).alias(f"{prefix}buckets"),
        F.collect_set(F.expr(minute_sql(time))).alias(f"{prefix}minutes"),
        F.min(F.unix_micros(time)).alias(f"{prefix}low"),
        F.max(F.unix_micros(time)).alias(f"{prefix}high"),
    ]


def measured(rows: DataFrame) -> tuple[Extent, list[int]]:
    """Where some events lie, and their shards; one job. Columns in: event_time, bucket, shard."""
    wanted = [F.count(F.lit(1)).alias("good"), *_extent_facts(), F.collect_set("shard").alias("shards")]
    facts = rows.agg(*wanted).collect()[0].asDict()
    return extent_of(facts), list(facts["shards"])


def extents(rows: DataFrame, bucket_seconds: int) -> tuple[Extent, Extent]:
    """Where some foreign events lie, and where the primary events lie that they name; one job.

    Columns in: event_time, bucket, primary_time.
    """
    named = _extent_facts("primary_time", bucket_sql("primary_time", bucket_seconds), "named_")
    facts = rows.agg(F.count(F.lit(1)).alias("good"), *_extent_facts(), *named).collect()[0].asDict()
    return extent_of(facts), extent_of(facts, "named_")


def extents_of(rows: pa.Table, bucket_seconds: int) -> tuple[Extent, Extent]:
    """The same of events in this process."""
    facts = {"good": rows.num_rows} | span_of(bucket_seconds, rows, "event_time", "")
    facts |= {"buckets": rows["bucket"].unique().to_pylist()} | span_of(bucket_seconds, rows, "primary_time", "named_")
    return extent_of(facts), extent_of(facts, "named_")


def landed_events(ctx: Context, landed: Mapping[str, Landed]) -> JoinInput | None:
    """The foreign events that a batch has landed; None where it has landed none."""
    if "foreign" not in landed:
        return None
    part = landed["foreign"]
    return JoinInput(part.own, primary_extent(ctx, part.own, part.named))
