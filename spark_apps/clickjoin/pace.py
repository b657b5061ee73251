"""Waiting between two batches: in short naps, so that whoever wants it to end is heard."""

from __future__ import annotations

import time
from collections.abc import Callable

IDLE_SECONDS = 0.2


def wait(until: float, stop: Callable[[], bool], end: float | None) -> None:
    """Sleep until a moment (of `time.monotonic`), at most until `end`, or until `stop` says so."""
    until = until if end is None else min(until, end)
    while (left := until - time.monotonic()) > 0 and not stop():
        time.sleep(min(left, IDLE_SECONDS))
