"""How far each stream has come, derived while a batch is planned, from what planning knows anyway: nothing is opened.

The rule is that of dates/readiness.py, which opens what is unread and so can tell more. A watermark never goes
back: that nothing older was unread stays true, whatever comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clickjoin.config.sections import Close
from clickjoin.model.ids import MICROS
from clickjoin.model.split import SourcePlan

_STEP, _QUIET = 60.0, 5.0  # seconds
BLIND = ("unreadable", "missing", "not-begun", "unfinished-line")


def stream_watermark(
    plan: SourcePlan,
    close: Close,
    now: float,
    newest: int | None,
    before: int | None,
    last_written: Callable[[], float],
) -> int | None:
    """The time (microseconds) before which no event of a stream is unread once this plan's splits are; None: not known.

    As far as logs that are about in order can tell. `now` in seconds since 1970; `newest`: the newest event time that
    batches before have landed; `before`: the watermark of the plan before; `last_written`: asked only where nothing is
    to be read. A source that knows better says so in its plan.
    """
    own = plan.watermark
    if own is None and plan.derived and not (plan.backlog_events or plan.backlog_bytes or _blind(plan)):
        at_rest = not plan.splits and now - last_written() >= close.idle_timeout
        reached = int(now * MICROS) if at_rest else newest
        own = None if reached is None else reached - int(close.max_out_of_orderness * MICROS)
    known = [mark for mark in (own, before) if mark is not None]
    return max(known, default=None)


def _blind(plan: SourcePlan) -> bool:
    return any(problem.kind in BLIND for problem in plan.problems)


def time_passed(
    marks: Mapping[str, int], before: Mapping[str, int], newest: Mapping[str, int], close: Close, quiet: float
) -> bool:
    """Whether watermarks are so far past those of the plan before that it is worth a batch of no records.

    Where that is what batches have landed: if it is `_STEP`, or anything once `quiet` (seconds since that plan) is
    `_QUIET`. Where a stream is at rest and the clock goes on: if it is `idle_timeout`.
    """
    for stream, mark in marks.items():
        landed = mark <= newest.get(stream, mark)
        step = (0 if quiet >= _QUIET else _STEP) if landed else close.idle_timeout
        if stream not in before or mark - before[stream] > max(step * MICROS - 1, 0):
            return True
    return False


def least(watermarks: Mapping[str, int], streams: int) -> int | None:
    """The watermark of all streams together; None unless that of each is known."""
    return min(watermarks.values()) if streams and len(watermarks) == streams else None


def newer(before: Mapping[str, int], landed: Mapping[str, int]) -> dict[str, int]:
    """The newest event time that has landed of each stream, with what one more batch has landed."""
    return {**before, **{stream: max(at, before.get(stream, at)) for stream, at in landed.items()}}
