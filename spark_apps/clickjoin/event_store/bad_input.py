"""Input that people should know of at once: nearly all records are bad, or a packed file could not be read to its end.

Of the first most likely a column is misspelt in the pipeline's file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from clickjoin.event_store.landing import own_quarantine
from clickjoin.kernel.packed import may_be_packed
from clickjoin.model.split import Problem

if TYPE_CHECKING:
    import pyarrow as pa

    from clickjoin.config.pipeline import Input
    from clickjoin.engines.context import Context
    from clickjoin.event_store.landing import Landed

FLOOD, BROKEN = "quarantined", "broken-file"  # the kinds of problem
FEWEST = 20
SHARE = 0.95
NAMED = 20  # broken files that a problem names
_NOT_A_LINE = ("broken-json", "not-an-object")


def floods(ctx: Context, landed: Mapping[str, Landed]) -> dict[str, Problem | None]:
    """The problem of each stream of which this batch has read enough records to tell; None where most are good."""
    flooded = {
        stream: _problem(ctx, stream, part) if part.bad >= SHARE * (part.bad + part.own.rows) else None
        for stream, part in landed.items()
        if part.bad + part.own.rows >= FEWEST
    }
    broken = {stream: found for stream, part in landed.items() if part.bad and (found := _broken(ctx, stream))}
    both = {
        stream: replace(problem, detail=f"{problem.detail}. And {broken[stream].detail}")
        for stream, problem in flooded.items()
        if problem and stream in broken
    }
    return flooded | broken | both


def hint(reason: str) -> str:
    """What to do where nearly all lines have this reason: a file may be JSON, and not a record a line."""
    return " (pretty-printed JSON: by `jq -c . FILE`; an array: by `jq -c '.[]' FILE`)" if reason in _NOT_A_LINE else ""


def all_bad(item: Input, bad: pa.Table) -> Problem:
    """That a stream has nothing but records in quarantine, `bad` (reason, detail)."""
    reason, detail = _most(bad)
    return Problem(
        FLOOD,
        item.source.path,
        f"no record of the {item.name} stream was good so far, {bad.num_rows} went to quarantine, most of them as "
        f"{reason}: {detail}{hint(reason)}. {_REMEDY}",
    )


_REMEDY = (
    "Run `clickjoin validate`, fix the pipeline's file or the records, and read them again with `clickjoin quarantine "
    "export`"
)


def _most(bad: pa.Table) -> tuple[str, str]:
    """The most frequent reason, with its detail."""
    found = Counter((row["reason"], row["detail"]) for row in bad.to_pylist())
    return found.most_common(1)[0][0]


def _broken(ctx: Context, stream: str) -> Problem | None:
    """Packed files of this batch that ended early or are damaged, by name: what they lack is in no other count."""
    if not any(may_be_packed(split.path) for split in ctx.plan.splits.get(stream, ())):
        return None
    rows = own_quarantine(ctx, stream, ["path", "detail"], reason=BROKEN).to_pylist()
    said = sorted({f"{row['path']}: {row['detail']}" for row in rows})
    if len(said) > NAMED:
        more = f"{len(said) - NAMED} more such files, named in table `quarantine` with reason {BROKEN}"
        said = [*said[:NAMED], more]
    return Problem(BROKEN, min(row["path"] for row in rows), "; ".join(said)) if rows else None


def _problem(ctx: Context, stream: str, part: Landed) -> Problem:
    reason, detail = _most(own_quarantine(ctx, stream, ["reason", "detail"]))
    source = next(item.source for item in ctx.pipeline.inputs if item.name == stream)
    return Problem(
        FLOOD,
        source.path,
        f"{part.bad} of {part.bad + part.own.rows} records of the {stream} stream went to quarantine, most of them as "
        f"{reason}: {detail}{hint(reason)}. {_REMEDY}",
    )
