"""One batch, in seven steps: plan (done by the dispatcher), land, screen and look up, claim, publish, settle.

Every commit carries the batch's own number, so any step can be cut short, repeated, or run by two processes at once:
what is claimed is fixed by one commit, and what is published is exactly what was claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from clickjoin.dispatcher.journal import is_settled
from clickjoin.dispatcher.peers import await_claims
from clickjoin.engines.context import Context
from clickjoin.engines.port import JoinInput, Outcome, ReadAhead
from clickjoin.event_store.bad_input import floods
from clickjoin.event_store.landing import land, landed_events
from clickjoin.model import failpoint
from clickjoin.model.errors import BatchError, DataFileGone, ExecutorLost, FilesGone, SourceMoved
from clickjoin.model.ids import micros_of
from clickjoin.model.split import Split
from clickjoin.registry.boundary import load_boundary
from clickjoin.retry.due import due_events
from clickjoin.sources.port import Source
from clickjoin.spark.failures import translate
from clickjoin.spark.session import tune_codegen

_MOVES = 3
_PASSING = (FilesGone, SourceMoved, DataFileGone, ExecutorLost)


def run_batch(
    ctx: Context,
    sources: Mapping[str, Source],
    ahead: ReadAhead | None = None,
    landed: Callable[[Context], None] = lambda _: None,
) -> dict[str, tuple[Split, ...]]:
    """Carry a planned batch through to where only the journal's last word is missing. Returns splits that were lost.

    `ahead`: what was written of its records before; `landed`: called once they are in their tables.
    """
    failpoint.reach("planned")
    work, lost = (_taken_up(ctx), {}) if ctx.plan.table else _land(ctx, sources, ahead)
    failpoint.reach("landed")
    landed(ctx)
    if work and work.own.rows:
        ctx.counts["events_in"] = work.own.rows
        tune_codegen(ctx.lake.started, work.own.rows)
        _join(ctx, work)
    return lost


def carry_through(
    ctx: Context,
    sources: Mapping[str, Source],
    ahead: ReadAhead | None = None,
    landed: Callable[[Context], None] = lambda _: None,
) -> dict[str, tuple[Split, ...]]:
    """Run the batch; again at once where a log was renamed, packed or cut, or files or an executor went."""
    for _ in range(_MOVES):
        try:
            return run_batch(ctx, sources, ahead, landed)
        except Exception as error:
            if not isinstance(translate(error), _PASSING):
                raise
            ahead = None  # its files may be what is gone
    return run_batch(ctx, sources, landed=landed)


def _taken_up(ctx: Context) -> JoinInput:
    with ctx.step("land"):
        return due_events(ctx)


def _land(
    ctx: Context, sources: Mapping[str, Source], ahead: ReadAhead | None = None
) -> tuple[JoinInput | None, dict[str, tuple[Split, ...]]]:
    with ctx.step("land"):
        landed = land(ctx, sources, ahead)
    ctx.floods = floods(ctx, landed)
    ctx.newest = {stream: micros_of(part.own.high) for stream, part in landed.items() if part.own.high}
    ctx.counts["primary_in"] = landed["primary"].own.rows if "primary" in landed else 0
    return landed_events(ctx, landed), {stream: part.lost for stream, part in landed.items() if part.lost}


def _join(ctx: Context, work: JoinInput) -> None:
    outcome = _look_up(ctx, work)
    failpoint.reach("looked-up")
    if not outcome.final:
        outcome = _claim(ctx, work, outcome)
    _require_complete(ctx, outcome)
    with ctx.step("publish"):
        ctx.lake.publish(ctx, outcome)
    failpoint.reach("published")
    corrected: Mapping[str, int] = {}
    # Of a batch that another copy has settled, claims may have been collected since: their events are in their places.
    if not (outcome.final and is_settled(ctx.lake.delta, ctx.plan)):
        with ctx.step("settle"):
            corrected = ctx.lake.write_side_outputs(ctx, outcome, partial(load_boundary, ctx.lake.delta))
    failpoint.reach("set-aside")
    _count(ctx, work, outcome)
    ctx.counts |= corrected


def _look_up(ctx: Context, work: JoinInput) -> Outcome:
    """What becomes of each event: by the registry's claims alone where they are committed."""
    with ctx.step("lookup"), ctx.lake.delta.looked_at("registry", "journal", "primary", "foreign"):
        fixed = ctx.is_fixed
        if not fixed:
            await_claims(ctx)
        return ctx.lake.resolve(ctx, work, fixed=fixed)


def _claim(ctx: Context, work: JoinInput, outcome: Outcome) -> Outcome:
    """Fix the batch's claims by one commit; where some are others', the registry decides what it may publish."""
    with ctx.step("claim"):
        all_claimed = ctx.lake.claim(ctx, outcome)
    failpoint.reach("claimed")
    if all_claimed:
        return outcome
    with ctx.step("lookup"):
        final = ctx.lake.resolve(ctx, work, fixed=True)
    ctx.counts["wasted"] = max(outcome.count("joined") - final.count("joined"), 0)
    return final


def _count(ctx: Context, work: JoinInput, outcome: Outcome) -> None:
    for status in ("joined", "pending", "unjoinable", "expired", "filtered"):
        ctx.counts[status] = outcome.count(status)
    distinct = sum(tally.extent.rows for tally in outcome.tallies.values())
    ctx.counts["repeats"] = outcome.count("repeat") + work.own.rows - distinct
    ctx.misfits = dict(outcome.misfits)
    ctx.counts["absent"] = outcome.absent
    ctx.times = outcome.tallies["joined"].times if "joined" in outcome.tallies else ()


def _require_complete(ctx: Context, outcome: Outcome) -> None:
    """Check that every claim of the batch has its primary event, and that the adapter keeps it. Errors: BatchError."""
    broken = outcome.count("broken")
    if not broken or _is_published(ctx):  # else this is a late copy, and its queries are collected
        return
    if outcome.dropped:
        what = f"adapter {ctx.pipeline.adapter}" if ctx.pipeline.output.is_default else "`output`"
        raise BatchError(
            f"batch {ctx.plan.token}: has claimed {outcome.dropped} events as joined that {what} drops: it was "
            "another, or another version of it, when they were claimed",
            remedy="Put that one back until the batch is settled (`clickjoin drain`), then change it",
        )
    raise BatchError(
        f"batch {ctx.plan.token}: {broken} of its claims have no primary event any more",
        remedy="Look whether rows of table `primary` were removed; the batch stays unsettled",
    )


def _is_published(ctx: Context) -> bool:
    """Whether this batch's output has been committed already, by whichever copy of it."""
    return ctx.lake.delta.latest_txn_version("joined", ctx.plan.txn.app_id) >= ctx.plan.number
