"""What holds the watermark of an output where it is, by name: the stream, the place in it, and since when.

The watermark is the least of all streams'; a stream's is that of its newest event once all of it is read. So what is
named is what is unread, or, where nothing is, the place of that newest event. This looks at the logs as they are now,
as `clickjoin status` does; who plans batches asks `Upstream` alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import inf
from typing import TYPE_CHECKING

from clickjoin.chain.source import Upstream
from clickjoin.config import OfPipeline
from clickjoin.dispatcher.journal import JournalReader, JournalState
from clickjoin.dispatcher.watermarks import BLIND
from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import ClickjoinError
from clickjoin.model.ids import moment
from clickjoin.model.split import Budget, SourcePlan
from clickjoin.sources.open import open_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickjoin.config import Pipeline
    from clickjoin.config.pipeline import Input
    from clickjoin.model.split import SourceOffset
    from clickjoin.sources.port import Source

_SHOWN = 3
_BLUR = timedelta(milliseconds=1)  # statistics of files know no shorter time


@dataclass(frozen=True)
class RestsOn:
    """A watermark (None: not known) and what it rests on, in a sentence and by name.

    `stream`: its section in the pipeline's file. `place`: a file, table or partition of a topic. `since`: it has stood
    there at least since then. All are empty where it rests on no stream, but on an event that waits, or on a batch.
    """

    time: datetime | None
    why: str
    stream: str = ""
    place: str = ""
    since: datetime | None = None


def rests_on(pipeline: Pipeline) -> RestsOn:
    """What the watermark of a pipeline's output rests on. What cannot be read is said in `why`."""
    mark = Upstream(pipeline.root).watermark()
    found = RestsOn(mark.time, mark.why)
    if not mark.replica:
        return found
    try:
        return _named(pipeline, found, mark.replica)
    except ClickjoinError as error:
        return replace(found, why=f"{mark.why}; {error}")


def _named(pipeline: Pipeline, found: RestsOn, replica: str) -> RestsOn:
    journal = JournalReader(ReadableTables(pipeline.root), pipeline.pipeline, replica, "join")
    state = journal.load()
    item = min(pipeline.inputs, key=lambda item: state.passed.get(item.name, -1))  # first one that is not known
    since = journal.held_since(item.name, state.watermarks.get(item.name))
    why, place = _why(pipeline, item, state)
    stands = "" if since is None else f", since {since:%Y-%m-%d %H:%M:%S} UTC"
    return replace(found, why=f"{pipeline.pipeline}: {item.section}{stands}: {why}", stream=item.section, place=place,
                   since=since)  # fmt: skip


def _why(pipeline: Pipeline, item: Input, state: JournalState) -> tuple[str, str]:
    """Why a stream has come no further, and the place that this is about."""
    source, offsets = open_source(item.source, keep=False), state.offsets.get(item.name, {})
    plan = source.plan(offsets, Budget(1, 1))
    for problem in plan.problems:
        if problem.kind in BLIND:
            return f"{problem.kind}: {problem.path}: {problem.detail}", problem.path
    under_way = state.unsettled.splits.get(item.name, ()) if state.unsettled else ()
    if unread := list(dict.fromkeys([*_unread(plan), *(split.path for split in under_way)])):
        more = f" and {len(unread) - _SHOWN} more" if len(unread) > _SHOWN else ""
        return f"unread in {', '.join(unread[:_SHOWN])}{more}", unread[0]
    if isinstance(item.source, OfPipeline):
        return f"all read, and {Upstream(item.source.root).watermark().why}", item.source.root
    return _at_its_end(pipeline, item, state, source, offsets)


def _unread(plan: SourcePlan) -> list[str]:
    """Places with something unread, of partitions that are counted those with most of it first."""
    behind = sorted(((left, path) for path, left in plan.lag.items() if left), reverse=True)
    return [*(path for _, path in behind), *(split.path for split in plan.splits)]


def _at_its_end(
    pipeline: Pipeline, item: Input, state: JournalState, source: Source, offsets: Mapping[str, SourceOffset]
) -> tuple[str, str]:
    """What is said of a stream that is read to its end."""
    newest = state.newest.get(item.name)
    if newest is None:
        return "all read, and it has given no event yet", ""
    at, place = moment(newest), _place(pipeline, item, moment(newest))
    said = f"all read, its newest event is of {at:%Y-%m-%d %H:%M:%S} UTC" + (f", in {place}" if place else "")
    written = source.last_written(offsets)
    if 0 < written < inf:
        said += f"; nothing was written since {datetime.fromtimestamp(written, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return said, place


def _place(pipeline: Pipeline, item: Input, newest: datetime) -> str:
    """Where the newest event of a stream lay, by what has landed; empty where that is not kept any more."""
    near = [("event_time", ">=", newest - _BLUR), ("event_time", "<=", newest + _BLUR)]
    rows = ReadableTables(pipeline.root).read(item.name, near, ["event_time", "path"]).to_pylist()
    return next((str(row["path"]) for row in rows if row["event_time"] == newest and row["path"]), "")
