"""The time, as the lake itself tells it: that of a file that was written just now.

Processes on several hosts share a lake, and their clocks need not agree. What one decides by time of what another has
written (whether a file is old, a retry is due, a date is over) rests on this one clock: the file server's, the object
store's, or, on a local disk, the machine's.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import NamedTuple

from clickjoin.lake.location import location
from clickjoin.model.errors import ClockError

PROBE = "_clock"  # in the pipeline's folder; it holds the time of whichever process wrote it last
_MEASURE_SECONDS = 60.0


class Reading(NamedTuple):
    """The time by this process's clock and by the lake's, in seconds since 1970, read together."""

    place: str
    process: float
    lake: float

    @property
    def apart(self) -> float:
        """Seconds that the process's clock is ahead of the lake's."""
        return self.process - self.lake

    @property
    def sure(self) -> float:
        """A time that it is by both clocks: what is old then is old."""
        return min(self.process, self.lake)

    def require(self, bound: float) -> None:
        """Check that the clocks agree within so many seconds. Errors: ClockError, with both times."""
        if abs(self.apart) > bound:
            raise ClockError(
                f"this process's clock says {_text(self.process)}, and the lake's {_text(self.lake)} ({self.place}): "
                f"{abs(self.apart):.0f} s apart, more than {bound:.0f} s; no file was removed",
                remedy="Set the wrong clock (`timedatectl`, on this host and on the lake's), then collect again; "
                "joins go on by the lake's clock meanwhile",
            )


def _text(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def read(root: str) -> Reading:
    """Both clocks now; `root`: the pipeline's folder, which a small file is written to."""
    before = time.time()
    folder = location(root)
    folder.write(PROBE, f"{datetime.fromtimestamp(before, UTC).isoformat()}\n".encode())
    found = folder.stored(PROBE)
    after = time.time()
    lake = found.at if found else after  # another has removed it: it is written again at the next look
    # Between the two looks the lake's own time is some moment, so nothing within them counts as a difference.
    process = min(max(lake, before), after)
    return Reading(f"{root}/{PROBE}", process, lake)


def careful_now(root: str) -> datetime:
    """The earlier of both clocks' times; the process's alone where the lake may not be written to."""
    try:
        now = read(root).sure
    except OSError:
        now = time.time()
    return datetime.fromtimestamp(now, UTC)


class LakeClock:
    """The lake's time, in seconds since 1970. Measured once a minute; between, a clock goes on that nobody sets."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: tuple[float, float, float] | None = None  # lake's, monotonic, process's

    def __call__(self) -> float:
        """The time now."""
        steady, process = time.monotonic(), time.time()
        if self._known is None or self._is_old(steady, process):
            self._known = (read(self._root).lake, steady, process)
        lake, since, _ = self._known
        return lake + steady - since

    def _is_old(self, steady: float, process: float) -> bool:
        """A minute has passed; or the machine slept, or its clock was set: then the two have gone differently far."""
        _, since, then = self._known or (0.0, steady, process)
        return steady - since >= _MEASURE_SECONDS or abs((process - then) - (steady - since)) > 1
