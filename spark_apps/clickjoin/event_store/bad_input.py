"""A stream whose records nearly all end in quarantine: most likely a column is misspelt in the pipeline's file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from clickjoin.event_store.landing import own_quarantine
from clickjoin.model.split import Problem

if TYPE_CHECKING:
    from clickjoin.batch_context import Context
    from clickjoin.event_store.landing import Landed

FLOOD = "quarantined"  # the kind of problem
FEWEST = 20
SHARE = 0.95


def floods(ctx: Context, landed: Mapping[str, Landed]) -> dict[str, Problem | None]:
    """The problem of each stream of which this batch has read enough records to tell; None where most are good."""
    return {
        stream: _problem(ctx, stream, part) if part.bad >= SHARE * (part.bad + part.own.rows) else None
        for stream, part in landed.items()
        if part.bad + part.own.rows >= FEWEST
    }


def _problem(ctx: Context, stream: str, part: Landed) -> Problem:
    rows = own_quarantine(ctx, stream, ["reason", "detail"]).to_pylist()
    ((reason, detail), _), *_ = Counter((row["reason"], row["detail"]) for row in rows).most_common(1)
    source = next(item.source for item in ctx.pipeline.inputs if item.name == stream)
    return Problem(
        FLOOD,
        source.path,
        f"{part.bad} of {part.bad + part.own.rows} records of the {stream} stream went to quarantine, most of them as "
        f"{reason}: {detail}. Run `clickjoin validate`, fix the pipeline's file or the records, and read them again "
        "with `clickjoin quarantine export`",
    )
