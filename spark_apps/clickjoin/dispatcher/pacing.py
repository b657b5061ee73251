"""When what is run: waiting between two batches in short naps, and one kind of work that gives way to another."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
IDLE_SECONDS = 0.2


def wait(until: float, stop: Callable[[], bool], end: float | None) -> None:
    """Sleep until a moment (of `time.monotonic`), at most until `end`, or until `stop` says so."""
    until = until if end is None else min(until, end)
    while (left := until - time.monotonic()) > 0 and not stop():
        time.sleep(min(left, IDLE_SECONDS))


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
