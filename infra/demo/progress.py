"""How long nothing has changed: the demo goes by this and by no clock, since a busy machine is slow and not wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

SLOW, GIVE_UP, SAY_EVERY = 30.0, 900.0, 60.0  # seconds without any change; seconds from one remark to the next


class Progress:
    """Knows when what it is shown has changed last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: object = None
        self._changed = self._said = clock()

    def look(self, now: object) -> float:
        """Seconds for which this has been as it is: versions of tables, lines that were fed, whatever moves."""
        if now != self._seen:
            self._seen, self._changed = now, self._clock()
        return self._clock() - self._changed

    def remark(self, load: float | None = None, cores: int | None = None) -> str:
        """What to say of a wait that has become long, once in a while; else empty. `load`: processes that would run."""
        idle, now = self._clock() - self._changed, self._clock()
        if idle < SLOW or now - self._said < SAY_EVERY:
            return ""
        self._said = now
        load = os.getloadavg()[0] if load is None else load
        cores = len(os.sched_getaffinity(0)) if cores is None else cores
        why = "the machine is busy" if load > cores else "the machine is not busy"
        left = f"it gives up after {GIVE_UP / 60:.0f} minutes without any change"
        return f"nothing new for {idle:.0f} s; {why} (load {load:.1f}, cores {cores}): waiting on, {left}"
