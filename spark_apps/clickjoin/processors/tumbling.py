"""Counts by key and window, reported once the watermark has passed the window's end; late events correct them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from clickjoin.processors.durations import microseconds
from clickjoin.processors.packing import (
    Ragged,
    counted,
    merged,
    pack_items,
    pack_ragged,
    unpack_items,
    unpack_ragged,
)
from clickjoin.processors.port import NEVER, Done, Outlook, Processor, Work, signals

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

# A window that has ended, kept while late events may come: all its events, and how many were reported (0: it was not).
_ENDED = np.dtype([("window", "<i8"), ("count", "<i8"), ("said", "<i8"), ("revision", "<i8")])
_SUMS = ("count", "said", "revision")
Rows = Any  # an array of _ENDED


class TumblingCounts(Processor):
    """How many events a key has in each window.

    `window`: its width, such as 10s, 1m or 1h; `min_count`: windows of fewer are left out.
    """

    state: ClassVar[pa.Schema] = pa.schema([("open", pa.binary()), ("ended", pa.binary())])
    fixed: ClassVar[tuple[str, ...] | None] = ("window",)
    corrects: ClassVar[bool] = True

    def __init__(self, window: str = "1m", min_count: int = 1) -> None:
        self.window, self.min_count = microseconds(window, "window"), int(min_count)

    def process(self, work: Work) -> Done:
        """See Processor."""
        windows, keys = work.times // self.window, len(work.keys)
        late = (windows + 1) * self.window <= (work.passed if work.lateness else 0)
        items = merged(unpack_ragged(work.state["open"]), counted(work.at[~late], windows[~late]))
        final = (items.window + 1) * self.window <= work.watermark
        left = Ragged(*(part[~final] for part in items))
        at, rows = items.at[final], self._ended(items.window[final], items.count[final])
        reported = [self._signals(at, rows, rows["said"] > 0)]
        timers = np.full(keys, NEVER, np.int64)
        np.minimum.at(timers, left.at, (left.window + 1) * self.window)
        ended: Any = pa.nulls(keys, pa.binary())
        if work.lateness:
            before_at, before = self._corrected(work, counted(work.at[late], windows[late]), reported)
            at, rows = np.concatenate([before_at, at]), np.concatenate([before, rows])
            ended = self._kept(work, at, rows, timers)
        state = pa.table({"open": pack_ragged(left, keys), "ended": ended})
        return Done(state, timers, timers == NEVER, pa.concat_tables(reported))

    def _ended(self, windows: Ints, counts: Ints) -> Rows:
        rows = np.zeros(len(windows), _ENDED)
        rows["window"], rows["count"] = windows, counts
        rows["said"] = np.where(counts >= self.min_count, counts, 0)
        return rows

    def _corrected(self, work: Work, late: Ragged, reported: list[pa.Table]) -> tuple[Ints, Rows]:
        """Windows that had ended before, with late events taken in; what that changes goes to `reported`."""
        at, known = unpack_items(work.state["ended"], _ENDED)
        at, rows = np.concatenate([at, late.at]), np.concatenate([known, np.zeros(len(late.at), _ENDED)])
        rows["window"][len(known) :], rows["count"][len(known) :] = late.window, late.count
        order = np.lexsort((rows["window"], at))
        at, rows, more = at[order], rows[order], order >= len(known)
        if not len(at):
            return at, rows
        first = np.flatnonzero(np.append(True, (at[1:] != at[:-1]) | (rows["window"][1:] != rows["window"][:-1])))
        whole = rows[first]
        for name in _SUMS:
            whole[name] = np.add.reduceat(rows[name], first)
        changed = np.logical_or.reduceat(more, first)
        at, was = at[first], changed & (whole["said"] > 0)
        reported.append(self._signals(at, whole, was, retracted=True))
        whole["revision"] += was
        whole["said"] = np.where(changed, np.where(whole["count"] >= self.min_count, whole["count"], 0), whole["said"])
        reported.append(self._signals(at, whole, changed & (whole["said"] > 0)))
        return at, whole

    def _kept(self, work: Work, at: Ints, rows: Rows, timers: Ints) -> Any:
        """Windows that late events may still come to, as a column; `timers` say when they are dropped."""
        until = (rows["window"] + 1) * self.window + work.lateness
        order = np.lexsort((rows["window"], at))
        order = order[until[order] > work.watermark]
        np.minimum.at(timers, at[order], until[order])
        return pack_items(at[order], rows[order], len(work.keys))

    def _signals(self, at: Ints, rows: Rows, which: Any, *, retracted: bool = False) -> pa.Table:
        at, rows = at[which], rows[which]
        return signals(
            of=at,
            kind=np.full(len(at), "count"),
            window_start=rows["window"] * self.window,
            window_end=(rows["window"] + 1) * self.window,
            count=rows["said"],
            revision=rows["revision"],
            retracted=np.full(len(at), retracted),
        )

    def outlook(self, state: pa.Table, watermark: int, began: int) -> Outlook:
        """See Processor."""
        return Outlook(opened(unpack_ragged(state["open"]), self.window))


def opened(items: Ragged, width: int) -> tuple[tuple[int, int, int], ...]:
    """Windows as begin, end (microseconds) and count; those of one key."""
    pairs = zip(items.window.tolist(), items.count.tolist(), strict=True)
    return tuple((window * width, (window + 1) * width, count) for window, count in pairs)
