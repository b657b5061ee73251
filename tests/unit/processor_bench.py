"""A processor that is given its keys as the product does it, with all state in one dictionary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from clickjoin.processors import NEVER, Processor, Work

SECOND, MINUTE, HOUR, DAY = 10**6, 60 * 10**6, 3600 * 10**6, 86400 * 10**6
BEGAN = 20_000 * DAY
Event = tuple[str, int]  # key and time
Signal = tuple[object, ...]


class Driver:
    """Hands a processor its keys as the product does, with all state in one dictionary."""

    def __init__(self, processor: Processor, began: int = BEGAN, lateness: int = 0) -> None:
        self.processor, self.began, self.lateness = processor, began, lateness
        self.passed = 0
        self.state: dict[str, dict[str, object]] = {}
        self.timers: dict[str, int] = {}
        self.signals: list[Signal] = []

    def batch(self, events: Iterable[Event], watermark: int) -> None:
        """Events none of which is further behind the last watermark than `lateness`, and the watermark after them."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for key, time in events:
            found[key].append(time)
        keys = sorted({*found, *(key for key, at in self.timers.items() if at <= watermark)})
        passed, self.passed = self.passed, watermark
        if not keys:
            return
        rows = [self.state.get(key, {}) for key in keys]
        work = Work(
            pa.array(keys),
            pa.Table.from_pylist(rows, schema=self.processor.state),
            np.array([key in self.state for key in keys]),
            np.repeat(np.arange(len(keys)), [len(found[key]) for key in keys]),
            np.array([time for key in keys for time in sorted(found[key])], np.int64),
            watermark,
            self.began,
            passed,
            self.lateness,
        )
        done = self.processor.process(work)
        for at, (key, row) in enumerate(zip(keys, done.state.to_pylist(), strict=True)):
            self.state.pop(key, None)
            self.timers.pop(key, None)
            if not done.gone[at]:
                self.state[key], self.timers[key] = row, int(done.timers[at])
                assert self.timers[key] == NEVER or self.timers[key] > watermark, "a timer that has passed already"
        self.signals += [(keys[row.pop("of")], *row.values()) for row in done.signals.to_pylist()]


def reported(driver: Driver) -> list[Signal]:
    return sorted(driver.signals, key=str)
