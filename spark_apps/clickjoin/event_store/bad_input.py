"""Input that people should know of at once: nearly all records are bad, or a packed file could not be read to its end.

Of the first most likely a column is misspelt in the pipeline's file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from clickjoin.event_store.landing import own_quarantine
from clickjoin.kernel.packed import may_be_packed
from clickjoin.model.split import Problem

if TYPE_CHECKING:
    from clickjoin.batch_context import Context
    from clickjoin.event_store.landing import Landed

FLOOD, BROKEN = "quarantined", "broken-file"  # the kinds of problem
FEWEST = 20
SHARE = 0.95


def floods(ctx: Context, landed: Mapping[str, Landed]) -> dict[str, Problem | None]:
    """The problem of each stream of which this batch has read enough records to tell; None where most are good."""
    found = {
        stream: _problem(ctx, stream, part) if part.bad >= SHARE * (part.bad + part.own.rows) else None
        for stream, part in landed.items()
        if part.bad + part.own.rows >= FEWEST
    }
    broken = {stream: _broken(ctx, stream) for stream, part in landed.items() if part.bad and not found.get(stream)}
    return found | {stream: problem for stream, problem in broken.items() if problem}


def _broken(ctx: Context, stream: str) -> Problem | None:
    """A packed file of this batch that ended early or is damaged: what it lacks is in no other count."""
    if not any(may_be_packed(split.path) for split in ctx.plan.splits.get(stream, ())):
        return None
    rows = own_quarantine(ctx, stream, ["path", "detail"], reason=BROKEN).to_pylist()
    return Problem(BROKEN, rows[0]["path"], f"{rows[0]['path']}: {rows[0]['detail']}") if rows else None


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
