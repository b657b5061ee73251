"""Counts by key and window, reported once the watermark has passed the window's end."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from clickjoin.processors.durations import microseconds
from clickjoin.processors.packing import Ragged, merged, pack_ragged, unpack_ragged
from clickjoin.processors.port import NEVER, Done, Outlook, Processor, Work, signals


class TumblingCounts(Processor):
    """How many events a key has in each window.

    `window`: its width, such as 10s, 1m or 1h; `min_count`: windows of fewer are left out.
    """

    state: ClassVar[pa.Schema] = pa.schema([("open", pa.binary())])

    def __init__(self, window: str = "1m", min_count: int = 1) -> None:
        self.window, self.min_count = microseconds(window, "window"), int(min_count)

    def process(self, work: Work) -> Done:
        """See Processor."""
        new = Ragged(work.at, work.times // self.window, np.ones(len(work.at), np.int64))
        items = merged(unpack_ragged(work.state["open"]), new)
        final = (items.window + 1) * self.window <= work.watermark
        left = Ragged(*(part[~final] for part in items))
        reported = final & (items.count >= self.min_count)
        timers = np.full(len(work.keys), NEVER, np.int64)
        np.minimum.at(timers, left.at, (left.window + 1) * self.window)
        return Done(
            pa.table({"open": pack_ragged(left, len(work.keys))}),
            timers,
            timers == NEVER,
            signals(
                of=items.at[reported],
                kind=np.full(reported.sum(), "count"),
                window_start=items.window[reported] * self.window,
                window_end=(items.window[reported] + 1) * self.window,
                count=items.count[reported],
            ),
        )

    def outlook(self, state: pa.Table, watermark: int, began: int) -> Outlook:
        """See Processor."""
        return Outlook(opened(unpack_ragged(state["open"]), self.window))


def opened(items: Ragged, width: int) -> tuple[tuple[int, int, int], ...]:
    """Windows as begin, end (microseconds) and count; those of one key."""
    pairs = zip(items.window.tolist(), items.count.tolist(), strict=True)
    return tuple((window * width, (window + 1) * width, count) for window, count in pairs)
