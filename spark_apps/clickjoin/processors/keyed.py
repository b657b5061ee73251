"""A processor for one key at a time: slower than columns, and easier to write."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from clickjoin.processors.port import NEVER, SIGNALS, Done, Processor, Work


@dataclass(frozen=True)
class Seen:
    """One key: its state as a dictionary (None: it has none), and times of its new events, ascending (microseconds).

    `watermark`, `began`, `passed` and `lateness` as in Work.
    """

    key: str
    state: Mapping[str, Any] | None
    times: Sequence[int]
    watermark: int
    began: int
    passed: int = 0
    lateness: int = 0


@dataclass(frozen=True)
class Said:
    """What came of it. `state`: None forgets the key; `timer`: when to be asked again without an event.

    `signals`: dictionaries with some of kind, window_start, window_end, count, expected, low, high, score,
    revision and retracted.
    """

    state: Mapping[str, Any] | None
    timer: int = NEVER
    signals: Sequence[Mapping[str, Any]] = field(default=())


class KeyedProcessor(Processor):
    """Derive from it, and give `state` and `one`."""

    @abstractmethod
    def one(self, seen: Seen) -> Said:
        """Take in the new events of one key, or its passed timer."""
        ...

    def _of(self, seen: Seen) -> Said:
        try:
            return self.one(seen)
        except Exception as error:
            error.add_note(f"key {seen.key!r:.80}")
            raise

    def process(self, work: Work) -> Done:
        """See Processor."""
        ends = np.searchsorted(work.at, np.arange(len(work.keys) + 1))
        times, rows = work.times.tolist(), work.state.to_pylist()
        more = (work.watermark, work.began, work.passed, work.lateness)
        said = [
            self._of(Seen(key, rows[at] if work.known[at] else None, times[ends[at] : ends[at + 1]], *more))
            for at, key in enumerate(work.keys.to_pylist())
        ]
        signals = [{"of": at, **signal} for at, one in enumerate(said) for signal in one.signals]
        return Done(
            pa.Table.from_pylist([one.state or {} for one in said], schema=self.state),
            np.array([NEVER if one.state is None else one.timer for one in said], np.int64),
            np.array([one.state is None for one in said], bool),
            pa.Table.from_pylist(signals, schema=SIGNALS),
        )
