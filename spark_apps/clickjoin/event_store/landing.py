"""Landing: the splits are parsed once; good records go to their stream's table, bad ones to quarantine.

Both commits carry the batch's number, so a replay is skipped; later steps read what has landed, never the logs again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from clickjoin.engines.context import Context
from clickjoin.engines.extents import extent_of
from clickjoin.engines.lookup import primary_extent
from clickjoin.engines.port import JoinInput, ReadAhead
from clickjoin.forgotten.known import not_to_land
from clickjoin.kernel.land_task import span_of
from clickjoin.model.extent import Extent
from clickjoin.model.split import Split
from clickjoin.model.txn import Txn
from clickjoin.sources.port import Source


@dataclass(frozen=True)
class Landed:
    """What a batch has landed of one stream: its rows' extent, that of the primary events they name, bad records.

    `passed`: records that no stream takes; None of a batch that had landed before.
    """

    own: Extent
    named: Extent
    lost: tuple[Split, ...] = ()
    bad: int = 0
    passed: int | None = None


def land(ctx: Context, sources: Mapping[str, Source], ahead: ReadAhead | None = None) -> dict[str, Landed]:
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
    passed = [part.passed for part in landed.values()]
    ctx.counts["passed_over"] = None if None in passed else sum(filter(None, passed))
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
    """The same facts from the table, for a batch that had landed before.

    Bad records are then unknown: -1; and so are those passed over, where `where` passes any: None.
    """
    key = [("batch", "=", ctx.plan.number), ("replica", "=", ctx.plan.replica)]
    named = ["primary_time"] if stream == "foreign" else []
    rows = ctx.lake.delta.read(stream, key, ["event_time", "bucket", *named])
    passed = 0 if ctx.pipeline.spec(stream, ctx.plan.planned).where is None else None
    facts = {"good": rows.num_rows, "bad": -1, "passed": passed} | span_of(ctx.bucket_seconds, rows, "event_time", "")
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
    return Landed(extent_of(facts), extent_of(facts, "named_"), lost, bad, facts["passed"])


def landed_events(ctx: Context, landed: Mapping[str, Landed]) -> JoinInput | None:
    """The foreign events that a batch has landed; None where it has landed none."""
    if "foreign" not in landed:
        return None
    part = landed["foreign"]
    return JoinInput(part.own, primary_extent(ctx, part.own, part.named))
