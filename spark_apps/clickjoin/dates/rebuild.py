"""Recomputing the output of a range with today's adapter: the same ids, one commit, readers see before or after.

Files of the output are replaced: never is a partition overwritten, for rows that are published meanwhile are none of
its business, and stay.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clickjoin.dates.late_events import context
from clickjoin.model.errors import CommitConflict, LakeError
from clickjoin.model.span import span_text
from clickjoin.registry.boundary import load_bounds

if TYPE_CHECKING:
    from clickjoin.engine import Engine
    from clickjoin.engines.context import Context
    from clickjoin.model.span import Span

_REASONS = {
    "foreign": "whose own record was collected (retention.foreign)",
    "primary": "whose primary event was collected (retention.primary)",
    "adapter": "that today's adapter leaves out",
    "doubled": "that are there once more",
}
_REMEDIES = {
    frozenset({"foreign", "primary"}): "Land the logs again (`clickjoin backfill --foreign … --primary …`)",
    frozenset({"adapter"}): "Have the adapter make a row of each of these ids",
    frozenset({"doubled"}): "Take them out with `clickjoin verify --repair --remove-doubles`",
}
_RUNS = 10


def rebuild(engine: Engine, span: Span, micros: int) -> dict[str, int]:
    """Recompute the output of a range; returns `rebuilt`, the number of rows.

    Errors: LakeError where some id could not be rebuilt, ConfigError for an adapter of whole DataFrames, AdapterError,
    CommitConflict; then nothing was changed.
    """
    _require_candidates(engine, span)
    return {"rebuilt": _by_files(span, context(engine, "rebuild", micros))}


def _require_candidates(engine: Engine, span: Span) -> None:
    """Check that all primary events among which a date's were picked are still there. Errors: LakeError."""
    match = engine.pipeline.match
    floor = load_bounds(engine.lake.delta)[1] if match else None
    if match and floor and span.low - timedelta(seconds=match.within) < floor:
        raise LakeError(
            f"{span.low:%Y-%m-%d}: primary events of up to {span_text(match.within)} before it were picked from, and "
            f"those from before {floor:%Y-%m-%d %H:%M}Z were collected (retention.primary); nothing was changed",
            remedy="Land the logs again (`clickjoin backfill --primary …`) in another lake, or leave the date as it is",
        )


def counted(span: Span, ctx: Context) -> dict[str, int]:
    """How many ids of the output there are (`rows`), and how many cannot be rebuilt, by reason. Changes nothing."""
    return ctx.lake.rebuilt(ctx, span, writes=False).counts


def _by_files(span: Span, ctx: Context) -> int:
    for _ in range(_RUNS):
        made = ctx.lake.rebuilt(ctx, span, writes=True)
        rows = _all_of(span, made.counts)
        # False: rows of these files were moved, changed or removed meanwhile; what is written is an orphan.
        if not rows or ctx.lake.replace_output(made):
            return rows
    raise CommitConflict(
        f"{ctx.lake.delta.path('joined')}: its files of {span.low:%Y-%m-%d} were rewritten {_RUNS} times while rows of "
        "theirs were made again; nothing was changed",
        remedy="Find the OPTIMIZE or MERGE that keeps rewriting them, stop it, and rebuild the date again",
    )


def _all_of(span: Span, counts: dict[str, int]) -> int:
    """The number of ids, all of which can be rebuilt. Errors: LakeError."""
    rows = counts["rows"]
    if gone := {name: count for name, count in counts.items() if count and name != "rows"}:
        why = ", ".join(f"{count} {_REASONS[name]}" for name, count in gone.items())
        raise LakeError(
            f"{span.low:%Y-%m-%d}: of {rows} ids in the output there are {why}; nothing was changed",
            remedy="; ".join(_REMEDIES[name] for name in _REMEDIES if gone.keys() & name),
        )
    return rows
