"""When what is run, and how much: pauses between batches, work that gives way to other work, streams kept abreast."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from clickjoin.model.split import Budget, SourcePlan

T = TypeVar("T")
IDLE_SECONDS = 0.2
_MOST_PAUSE = 30.0  # seconds
_LEAST_SHARE = 20
_BEHIND = 1 / 8  # of their share clicks are left for the next batch: no log grows quite evenly


def wait(until: float, stop: Callable[[], bool], end: float | None) -> None:
    """Sleep until a moment (of `time.monotonic`), at most until `end`, or until `stop` says so."""
    until = until if end is None else min(until, end)
    while (left := until - time.monotonic()) > 0 and not stop():
        time.sleep(min(left, IDLE_SECONDS))


class Pace:
    """At most one batch every `interval` seconds on average; after a quiet time AT_ONCE of them as soon as work comes.

    A bare interval would let a click that comes just after a batch wait, however few files the last minute has made.
    """

    AT_ONCE = 10

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._next = time.monotonic()  # a new process has no quiet time behind it

    def next_after(self, begun: float) -> float:
        """When the batch after the one that has begun then may begin (both of `time.monotonic`)."""
        quiet = (self.AT_ONCE - 1) * self._interval
        self._next = max(self._next, begun - quiet) + self._interval
        return self._next


def abreast(budget: Budget, primary: SourcePlan, foreign: SourcePlan) -> Budget | None:
    """What may be read of the foreign stream so that it does not run ahead of a backlog of primary events.

    Nearly the same share of its own backlog, and a twentieth of a batch at least, for the files of a backlog need not
    be those that the foreign events are waiting for. None where it is not ahead: clicks that come before their queries
    would all go to `pending`, and from there cost several times as much.
    """
    asked, taken = (sum(split.events for split in plan.splits) for plan in (primary, foreign))
    if not primary.backlog_events or not taken:
        return None
    share = asked / (asked + primary.backlog_events)
    most = max(ceil((1 - _BEHIND) * share * (taken + foreign.backlog_events)), budget.max_events // _LEAST_SHARE, 1)
    return replace(budget, max_events=most) if most < taken else None


def catch_up_pause(worked: float, share: float) -> float:
    """Seconds to leave to another replica after a batch that took some, to work for `catch_up_share` of the time."""
    return min(worked * (1 / share - 1), _MOST_PAUSE)


class DutyCycle:
    """Leaves work aside while something else waits and it has had half of the time: a retry of many takes long."""

    def __init__(self) -> None:
        self._until = 0.0

    def of(self, work: Callable[[], T | None], waits: bool) -> T | None:
        """Do the work, or leave it for now. `waits`: something else does."""
        begun = time.monotonic()
        if waits and begun < self._until:
            return None
        done, ended = work(), time.monotonic()
        self._until = 2 * ended - begun
        return done


class Passes:
    """How long a drain goes on with retries: each pass takes up all that is due when it begins.

    Tries become rarer with backoff, so a few passes are enough; unless they fall due faster than they can be tried.
    """

    MOST = 10

    def __init__(self) -> None:
        self.made = 0
        self._begun: datetime | None = None

    def goes_on(self, next_due: datetime | None, now: datetime) -> bool:
        """Whether to try what is due, of which `next_due` is the oldest: in this pass, or in another one."""
        if next_due is None or next_due > now:
            return False
        if self._begun is None or next_due > self._begun:
            if self.made == self.MOST:
                return False
            self.made, self._begun = self.made + 1, now
        return True
