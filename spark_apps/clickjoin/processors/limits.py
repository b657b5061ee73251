"""How many events are too many, or too few, where so many were expected; and signals of spikes and dips as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from clickjoin.processors.port import signals
from clickjoin.processors.seasonal import MOST_NOISE

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

ONE = 65536  # sums of what was expected are whole numbers of its part of an event
FAR = 1 << 60
SPIKE, DIP = 1, -1
# A signal; `start` and `end` in windows, `noise` that of its key when it was reported.
REPORTED = np.dtype([
    ("of", "<i8"), ("kind", "<i8"), ("start", "<i8"), ("end", "<i8"), ("count", "<i8"), ("expected", "<f8"),
    ("low", "<f8"), ("high", "<f8"), ("score", "<f8"), ("noise", "<f4"), ("revision", "<i8"), ("retracted", "?"),
])  # fmt: skip
Rows = Any  # an array of REPORTED


class Limits(NamedTuple):
    """`threshold`: standard deviations; `min_count`: no spike of fewer events."""

    threshold: float
    min_count: int

    def crossing(self, expected: Floats, noise: Any) -> Ints:
        """The least count that is too many: on the scale of square roots, on which counts vary alike."""
        margin = self.threshold / 2 * np.sqrt(1 + noise.astype(np.float64) * expected)
        high = (np.sqrt(expected + 0.375) + margin) ** 2 - 0.375
        return np.maximum(np.floor(high).astype(np.int64) + 1, self.min_count)  # type: ignore[no-any-return]

    def low(self, expected: Floats, noise: Any) -> Floats:
        """The least count that is enough."""
        return np.maximum(expected - self.threshold * _deviation(expected, noise), 0)

    def needed(self, count: Ints, noise: Any) -> Ints:
        """What must have been expected where so many came, for that to be too few; in parts of ONE."""
        square, noise = self.threshold**2, noise.astype(np.float64)
        kept = 1 - square * noise
        middle = 2 * count + square
        root = np.sqrt(np.maximum(middle**2 - 4 * kept * count.astype(np.float64) ** 2, 0))
        found = (middle + root) / (2 * np.maximum(kept, 0.01)) * ONE
        return np.where(kept > 0.01, np.minimum(np.ceil(found), FAR), FAR).astype(np.int64)

    def spikes(self, of: Ints, window: Ints, count: Ints, usual: Floats, noise: Any) -> Rows:
        """Signals of windows that hold too many."""
        rows = np.zeros(len(of), REPORTED)
        apart = 2 * (np.sqrt(count + 0.375) - np.sqrt(usual + 0.375))
        rows["of"], rows["kind"], rows["start"], rows["end"] = of, SPIKE, window, window + 1
        rows["count"], rows["expected"], rows["noise"] = count, usual, noise
        rows["score"] = apart / np.sqrt(1 + noise.astype(np.float64) * usual)
        rows["low"], rows["high"] = self.low(usual, noise), count - 1.0
        return rows

    def dips(self, of: Ints, start: Ints, end: Ints, count: Ints, usual: Floats, noise: Any) -> Rows:
        """Signals of runs of windows that hold too few."""
        rows = np.zeros(len(of), REPORTED)
        rows["of"], rows["kind"], rows["start"], rows["end"] = of, DIP, start, end
        rows["count"], rows["expected"], rows["noise"] = count, usual, noise
        rows["score"] = (usual - count) / _deviation(usual, noise)
        rows["low"], rows["high"] = self.low(usual, noise), self.crossing(usual, noise) - 1.0
        return rows


def as_signals(rows: Rows, window: int) -> pa.Table:
    """Signals by key and time; columns as port.SIGNALS. `window`: microseconds."""
    rows = rows[np.lexsort((rows["revision"], ~rows["retracted"], rows["start"], rows["of"]))]
    same = {name: rows[name] for name in ("of", "count", "expected", "low", "high", "score", "revision", "retracted")}
    kinds = np.where(rows["kind"] == SPIKE, "spike", "dip").tolist()
    return signals(**same, kind=kinds, window_start=rows["start"] * window, window_end=rows["end"] * window)


def _deviation(expected: Floats, noise: Any) -> Floats:
    return np.sqrt(expected + np.minimum(noise, MOST_NOISE).astype(np.float64) * expected**2)  # type: ignore[no-any-return]
