"""One batch, in seven steps: plan (done by the dispatcher), land, screen and look up, claim, publish, settle.

Every commit carries the batch's own number, so any step can be cut short, repeated, or run by two processes at once:
what is claimed is fixed by one commit, and what is published is exactly what was claimed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from clickjoin import faults
from clickjoin.context import Context
from clickjoin.dispatcher.journal import is_settled
from clickjoin.dispatcher.others import await_claims
from clickjoin.errors import BatchError
from clickjoin.event_store.flood import floods
from clickjoin.event_store.landing import land, lost_json, own_rows
from clickjoin.event_store.lookup import primary_extent
from clickjoin.joiner.bulk import Resolved, can_resolve, resolve
from clickjoin.joiner.classify import CLAIMED, Classified, Work, classify
from clickjoin.lake import extent as extents
from clickjoin.lake.extent import Extent
from clickjoin.registry.claim import claim, claim_written, is_fixed
from clickjoin.retry.due import due_work
from clickjoin.session import suit
from clickjoin.settle import is_published, publish, set_aside
from clickjoin.sources.base import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def run_batch(ctx: Context, sources: Mapping[str, Source]) -> dict[str, list[dict[str, Any]]]:
    """Carry a planned batch through to where only the journal's last word is missing. Returns slices that were lost."""
    faults.reach("planned")
    lost: dict[str, list[dict[str, Any]]] = {}
    if ctx.plan.pending is not None:
        work: Work | None = due_work(ctx)
    else:
        with ctx.step("land"):
            landed = land(ctx, sources)
        lost, ctx.floods = lost_json(landed), floods(ctx, landed)
        ctx.counts["primary_in"] = landed["primary"].own.rows if "primary" in landed else 0
        work = _landed_work(ctx, landed)
    faults.reach("landed")
    ctx.counts["events_in"] = work.own.rows if work else 0
    if work and work.own.rows:
        _join(ctx, work)
    return lost


def _landed_work(ctx: Context, landed: Mapping[str, Any]) -> Work | None:
    from pyspark.sql import functions as F

    if "foreign" not in landed:
        return None
    part = landed["foreign"]

    def rows() -> DataFrame:
        tried = {"round": F.lit(0), "attempt": F.lit(0), "first_seen": F.col("landed_at")}
        return own_rows(ctx, "foreign", part.own).withColumns(tried)

    return Work(rows, part.own, primary_extent(ctx, part.own, part.named))


def _join(ctx: Context, work: Work) -> None:
    fixed, done = is_fixed(ctx), None
    suit(ctx.lake.spark, work.own.rows)  # of a retry, nobody knew before; of a join, it was set for landing
    with ctx.step("lookup"):
        if not fixed:
            await_claims(ctx)
            done = resolve(ctx, work) if can_resolve(ctx) else None
        found = done.found if done else classify(ctx, work, fixed=fixed)
    faults.reach("looked-up")
    if not fixed:
        first = found
        with ctx.step("claim"):
            fixed = not (_claim_written(ctx, done) if done else _claim(ctx, found))
        faults.reach("claimed")
        if fixed:  # others took some of them, or a copy of this batch came first: the registry decides
            with ctx.step("lookup"):
                done, found = None, classify(ctx, work, fixed=True)
            ctx.counts["wasted"] = max(first.count("joined") - found.count("joined"), 0)
    if found.count("broken") and not is_published(ctx):  # else this is a late copy, and its queries are collected
        raise BatchError(
            f"batch {ctx.plan.token}: {found.count('broken')} of its claims have no primary event any more",
            remedy="Look whether rows of table `primary` were removed; the batch stays unsettled",
        )
    with ctx.step("publish"):
        publish(ctx, found, done.files if done else None)
    faults.reach("published")
    # Of a batch that another copy has settled, claims may have been collected since: their events are in their places.
    if not fixed or not is_settled(ctx.lake.small, ctx.plan):
        with ctx.step("settle"):
            set_aside(ctx, found, done.files if done else None)
    faults.reach("set-aside")
    _count(ctx, work, found)


def _claim(ctx: Context, found: Classified) -> bool:
    from pyspark.sql import functions as F

    whole, shards = _claimed(found)
    candidates = found.rows.where(F.col("status").isin(*CLAIMED)).withColumn("outcome", F.col("status"))
    return claim(ctx, candidates, whole, shards, found.little)


def _claim_written(ctx: Context, done: Resolved) -> bool:
    return claim_written(ctx, done.files["registry"], done.seen, *_claimed(done.found))


def _claimed(found: Classified) -> tuple[Extent, set[int]]:
    held = [found.tallies[status] for status in CLAIMED if status in found.tallies]
    return extents.merge(tally.extent for tally in held), {shard for tally in held for shard in tally.shards}


def _count(ctx: Context, work: Work, found: Classified) -> None:
    for status in ("joined", "pending", "unjoinable", "expired", "filtered"):
        ctx.counts[status] = found.count(status)
    distinct = sum(tally.extent.rows for tally in found.tallies.values())
    ctx.counts["repeats"] = found.count("repeat") + work.own.rows - distinct
    ctx.times = found.tallies["joined"].times if "joined" in found.tallies else ()
