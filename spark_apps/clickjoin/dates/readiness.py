"""Whether a date is complete, from logs and small tables alone: no Spark needed. It rests on the low watermark.

No event before that is unread in any source, as far as logs that are about in order can tell. A stream with something
unread has its watermark at its first unread record; one that has been read to its end, at the newest event that it
ever gave, or, where nothing came for `close.idle_timeout`, at now. A line that is not finished yet is unread,
and of about the time of those before it. `close.max_out_of_orderness` is taken off in each case.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from clickjoin.chain.source import Upstream
from clickjoin.config import OfPipeline
from clickjoin.dates import ledger
from clickjoin.dispatcher.journal import JournalReader
from clickjoin.dispatcher.unread import primary_passed
from clickjoin.dispatcher.watermarks import BLIND
from clickjoin.lake.clock import careful_now
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import DateError, LakeError
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.names import RAW
from clickjoin.model.split import Budget, Split
from clickjoin.report import by_date
from clickjoin.report.status import replicas
from clickjoin.retry.pending import open_rows
from clickjoin.sources.open import open_source
from clickjoin.sources.port import Source

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.config.pipeline import Input
    from clickjoin.config.sections import Retry
    from clickjoin.model.span import Day

_ALL = Budget(1 << 62, 1 << 62)


@dataclass(frozen=True)
class Watermark:
    """How far a stream (or all of them) has come; `time` None: not known, and `why` says what is in the way."""

    time: datetime | None
    why: str


def low_watermark(
    pipeline: Pipeline, delta: DeltaReader, now: float | None = None, day: Day | None = None
) -> Watermark:
    """The least of all streams', as the replica sees it that has come furthest.

    `day`: of which it is asked; a stream that is another pipeline's output is complete once that has closed it.
    """
    now = time.time() if now is None else now
    names = [name for name in replicas(delta) if not name.startswith(RAW)]
    if not names:
        return Watermark(None, "no batch has ever been planned")
    found = [_of_replica(pipeline, delta, name, now, day) for name in names]
    known = [mark for mark in found if mark.time]
    return max(known, key=lambda mark: mark.time or datetime.min) if known else found[0]


def _of_replica(pipeline: Pipeline, delta: DeltaReader, replica: str, now: float, day: Day | None) -> Watermark:
    state = JournalReader(delta, pipeline.pipeline, replica, "join").load()
    marks = []
    for item in pipeline.inputs:
        source, stream = open_source(item.source, keep=False), item.name
        upstream = _of_upstream(item, day)  # before its versions are looked at: what it has closed is in them
        offsets = state.offsets.get(stream, {})
        plan = source.plan(offsets, _ALL)
        blind = [problem for problem in plan.problems if problem.kind in BLIND]
        if blind:
            return Watermark(None, f"{stream}: {blind[0].kind}: {blind[0].path}: {blind[0].detail}")
        under_way = state.unsettled.splits.get(stream, ()) if state.unsettled else ()
        unread = (*under_way, *plan.splits)
        if unread or plan.backlog_bytes:
            mark = _unread(pipeline, source, item, unread, now)
        elif upstream:
            mark = upstream
        else:
            touched = source.last_written(offsets)
            mark = _at_rest(pipeline, delta, stream, now, touched)
        marks.append(mark)
        if plan.unfinished:
            marks.append(_unread(pipeline, source, item, plan.unfinished, now))
    blind_ = [mark for mark in marks if mark.time is None]
    return blind_[0] if blind_ else min(marks, key=lambda mark: mark.time or datetime.max)


def _of_upstream(item: Input, day: Day | None) -> Watermark | None:
    """How far the pipeline has come whose output a stream is: what it has closed is complete. None of other streams."""
    if not isinstance(item.source, OfPipeline):
        return None
    name = item.source.name
    if day is None:
        mark = Upstream(item.source.root).watermark()
        return Watermark(mark.time, f"{item.name}: {mark.why}")
    try:
        row = ledger.newest(ReadableTables(item.source.root)).get(day.date)
    except LakeError as error:
        return Watermark(None, f"{item.name}: {name}: {error}")
    if row and row["state"] == "closed":
        return Watermark(day.high, f"{item.name}: {name} has closed {day}")
    why = f"there it is {row['state']}: {row['detail']}" if row else "nobody has tried to"
    return Watermark(None, f"{item.name}: {name} has not closed {day} ({why})")


def _unread(pipeline: Pipeline, source: Source, item: Input, splits: Sequence[Split], now: float) -> Watermark:
    stream, times = item.name, source.first_times(splits, item.spec(int(now * MICROS)))
    if not splits or None in times.values():
        path = next((path for path, micros in times.items() if micros is None), "a packed file that is still written")
        return Watermark(None, f"{stream}: {path}: what is unread there has no good record to tell its time")
    path, micros = min(times.items(), key=lambda item: item[1] or 0)
    at = datetime.fromtimestamp((micros or 0) / MICROS, UTC) - timedelta(seconds=pipeline.close.max_out_of_orderness)
    return Watermark(at, f"{stream}: {path}: unread from {at:%Y-%m-%d %H:%M:%S} UTC on, disorder allowed for")


def _at_rest(pipeline: Pipeline, delta: DeltaReader, stream: str, now: float, touched: float) -> Watermark:
    disorder = timedelta(seconds=pipeline.close.max_out_of_orderness)
    if now - touched >= pipeline.close.idle_timeout:
        at = datetime.fromtimestamp(now, UTC) - disorder
        return Watermark(at, f"{stream}: at rest, all read, so complete up to {at:%Y-%m-%d %H:%M} UTC")
    files = delta.files(stream)
    newest = max((at for at in files["max.event_time"].to_pylist() if at), default=None) if files.num_rows else None
    if newest is None:
        return Watermark(None, f"{stream}: has given no event yet")
    at = newest.astimezone(UTC) - disorder
    rested = datetime.fromtimestamp(touched + pipeline.close.idle_timeout, UTC)
    rests = (
        f"at rest once nothing came for {pipeline.close.idle_timeout:g} s (close.idle_timeout), at {rested:%H:%M} UTC"
    )
    why = f"{stream}: all read, its newest event is of {newest.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC; {rests}"
    return Watermark(at, why)


def readiness(pipeline: Pipeline, day: Day) -> dict[str, Any]:
    """Whether a date is complete: `ready`, `why`, and whether `late` (its limit, close.wait, is over). No Spark."""
    delta, now = DeltaReader(pipeline.root), careful_now(pipeline.root)
    mark = low_watermark(pipeline, delta, now.timestamp(), day)
    why = [] if mark.time and mark.time >= day.high else [f"not all of its input is read: {mark.why}"]
    if not why and (held := held_by(pipeline, delta, day, awaited(pipeline, delta))):
        why.append(held)
    late = now >= day.high + timedelta(seconds=pipeline.close.wait)
    return {"date": str(day), "ready": not why, "why": "; ".join(why), "late": late}


_WAITING = ("first_seen", "due_at", "primary_time")
_NAMED = 3


def waiting(delta: DeltaReader) -> list[dict[str, Any]]:
    """Events that wait for their primary, as `held_by` needs them."""
    return open_rows(delta, *_WAITING)


def held_by(pipeline: Pipeline, delta: DeltaReader, day: Day, rows: Sequence[Mapping[str, Any]]) -> str:
    """Which events hold a date as they wait, and until when; empty where none do, or no more than may.

    `rows`: events that wait, of any date.
    """
    may, own = pipeline.close.pending, [row for row in rows if day.low <= row["event_time"] < day.high]
    if not own or may == "allow":
        return ""
    ids, share = sorted({row["event_id"] for row in own}), ""
    if isinstance(may, float):
        counts = {name: by_date.count(delta, name).get(str(day), 0) for name in by_date.PLACES}
        unmatched, whole = counts["pending"] + counts["unjoinable"], sum(counts.values())
        if unmatched <= may * whole:
            return ""
        share = (
            f"; {unmatched:,} of {whole:,} ({unmatched / max(whole, 1):.2%}) have none, close.pending allows {may:.2%}"
        )
    named = f"{', '.join(ids[:_NAMED])}{' …' if len(ids) > _NAMED else ''}"
    until = max(_given_up(pipeline.retry, row) for row in own)
    return (
        f"{len(ids)} of its events wait for their primary event ({named}), until the last is given up at about "
        f"{until:%Y-%m-%d %H:%M} UTC{share}"
    )


def _given_up(retry: Retry, row: Mapping[str, Any]) -> datetime:
    """About when an event is given up whose primary event does not come: tried often, and for long."""
    more = range(row["attempt"] + 1, retry.max_attempts)
    delays = (min(retry.first_delay * retry.backoff ** min(tries - 1, 64), retry.max_delay) for tries in more)
    often: datetime = row["due_at"] + timedelta(seconds=sum(delays))
    long: datetime = row["first_seen"] + timedelta(seconds=retry.max_age)
    return max(often, long).astimezone(UTC)


def by_hand(reason: str) -> str:
    """Why a date is closed although something is missing: someone has a reason."""
    return f"closed by hand ({reason})"


def awaited(pipeline: Pipeline, delta: DeltaReader) -> list[dict[str, Any]]:
    """Events that wait for their primary, but those that the next try will give up as absent."""
    rows = waiting(delta)
    if pipeline.retry.until == "attempts" or pipeline.match:
        return rows
    passed = {name: primary_passed(pipeline, delta, name) for name in {row["replica"] for row in rows}}
    return [row for row in rows if not _is_absent(row, passed[row["replica"]])]


def _is_absent(row: Mapping[str, Any], passed: int | None) -> bool:
    return passed is not None and (row["primary_time"] or row["event_time"]) < moment(passed)


def require_ready(pipeline: Pipeline, day: Day) -> None:
    """Check that a date is complete. Errors: DateError that says what is missing."""
    found = readiness(pipeline, day)
    if not found["ready"]:
        raise DateError(
            f"{day} is not complete: {found['why']}",
            remedy='Wait for it (--wait), or close it anyway (--reason "why"; kept in table `dates`)',
        )
