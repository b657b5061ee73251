"""The low watermark: no event before it is unread in any source, as far as logs that are about in order can tell.

A stream with something unread has come as far as the first record of it; one that has been read to its end, as far as
the newest event that it ever gave, or, where nothing came for `close.idle`, as far as now. `close.disorder` is taken
off in each case.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import Journal
from clickjoin.dispatcher.plan import STREAMS
from clickjoin.events import MICROS
from clickjoin.replicas import RAW
from clickjoin.report.status import replicas
from clickjoin.sources.base import Budget, Slice
from clickjoin.sources.files import FilesSource
from clickjoin.sources.sample import first_times

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake import SmallTables

_ALL = Budget(1 << 62, 1 << 62)
_BLIND = ("unreadable", "missing")


@dataclass(frozen=True)
class Watermark:
    """How far a stream (or all of them) has come; `time` None: not known, and `why` says what is in the way."""

    time: datetime | None
    why: str


def low_watermark(pipeline: Pipeline, small: SmallTables, now: float | None = None) -> Watermark:
    """The least of both streams', as the replica sees it that has come furthest."""
    now = time.time() if now is None else now
    names = [name for name in replicas(small) if not name.startswith(RAW)]
    if not names:
        return Watermark(None, "no batch has ever been planned")
    found = [_of_replica(pipeline, small, name, now) for name in names]
    known = [mark for mark in found if mark.time]
    return max(known, key=lambda mark: mark.time or datetime.min) if known else found[0]


def _of_replica(pipeline: Pipeline, small: SmallTables, replica: str, now: float) -> Watermark:
    state = Journal(small, pipeline.pipeline, replica, "join").load()
    marks = []
    for stream in STREAMS:
        source = FilesSource((pipeline.primary if stream == "primary" else pipeline.foreign).source, keep=False)
        plan = source.plan(state.positions.get(stream, {}), _ALL)
        blind = [problem for problem in plan.problems if problem.kind in _BLIND]
        if blind:
            return Watermark(None, f"{stream}: {blind[0].kind}: {blind[0].path}: {blind[0].detail}")
        under_way = state.unsettled.slices.get(stream, ()) if state.unsettled else ()
        unread = (*under_way, *plan.slices)
        if unread or plan.backlog_bytes:
            mark = _unread(pipeline, source, stream, unread, now)
        else:
            touched = max((position.mtime_ns / 1e9 for position in state.positions.get(stream, {}).values()), default=0)
            mark = _at_rest(pipeline, small, stream, now, touched)
        marks.append(mark)
    blind_ = [mark for mark in marks if mark.time is None]
    return blind_[0] if blind_ else min(marks, key=lambda mark: mark.time or datetime.max)


def _unread(pipeline: Pipeline, source: FilesSource, stream: str, slices: Sequence[Slice], now: float) -> Watermark:
    times = first_times(source, slices, pipeline.spec(stream, int(now * MICROS)))
    if not slices or None in times.values():
        path = next((path for path, micros in times.items() if micros is None), "a packed file that is still written")
        return Watermark(None, f"{stream}: {path}: what is unread there has no good record to tell its time")
    path, micros = min(times.items(), key=lambda item: item[1] or 0)
    at = datetime.fromtimestamp((micros or 0) / MICROS, UTC) - timedelta(seconds=pipeline.close.disorder)
    return Watermark(at, f"{stream}: {path}: unread from {at:%Y-%m-%d %H:%M:%S} UTC on, disorder allowed for")


def _at_rest(pipeline: Pipeline, small: SmallTables, stream: str, now: float, touched: float) -> Watermark:
    disorder = timedelta(seconds=pipeline.close.disorder)
    if now - touched >= pipeline.close.idle:
        at = datetime.fromtimestamp(now, UTC) - disorder
        return Watermark(at, f"{stream}: at rest, all read, so complete up to {at:%Y-%m-%d %H:%M} UTC")
    files = small.files(stream)
    newest = max((at for at in files["max.event_time"].to_pylist() if at), default=None) if files.num_rows else None
    if newest is None:
        return Watermark(None, f"{stream}: has given no event yet")
    at = newest.astimezone(UTC) - disorder
    return Watermark(at, f"{stream}: all read, its newest event is of {newest.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")
