"""Sessions: events of a key with no gap between them that is as long as a given one."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from clickjoin.processors.durations import microseconds
from clickjoin.processors.packing import packed
from clickjoin.processors.port import NEVER, Done, Outlook, Processor, Work, signals

_ITEM = np.dtype([("start", "<i8"), ("end", "<i8"), ("count", "<i8")])


class SessionWindows(Processor):
    """First and last event of a session, and how many, once the watermark is `gap` behind its last event."""

    state: ClassVar[pa.Schema] = pa.schema([("open", pa.binary())])

    def __init__(self, gap: str = "30m") -> None:
        self.gap = microseconds(gap, "gap")

    def process(self, work: Work) -> Done:
        """See Processor."""
        at, items = self._sessions(work)
        ended = items["end"] + self.gap <= work.watermark
        timers = np.full(len(work.keys), NEVER, np.int64)
        np.minimum.at(timers, at[~ended], items["end"][~ended] + self.gap)
        reported = items[ended]
        return Done(
            pa.table({"open": _by_key(at[~ended], items[~ended], len(work.keys))}),
            timers,
            timers == NEVER,
            signals(of=at[ended], kind=np.full(len(reported), "session"), window_start=reported["start"],
                    window_end=reported["end"], count=reported["count"]),
        )  # fmt: skip

    def outlook(self, state: pa.Table, watermark: int, began: int) -> Outlook:
        """See Processor."""
        items = np.frombuffer(state["open"][0].as_py() or b"", _ITEM)
        return Outlook(tuple(tuple(item) for item in items.tolist()))

    def _sessions(self, work: Work) -> tuple[np.ndarray, np.ndarray]:
        """All sessions that are open, those that meet made one: position of the key, and the session."""
        held = [value or b"" for value in work.state["open"].to_pylist()]
        known = np.frombuffer(b"".join(held), _ITEM)
        owners = np.repeat(np.arange(len(held)), [len(value) // _ITEM.itemsize for value in held])
        new = np.empty(len(work.at), _ITEM)
        new["start"], new["end"], new["count"] = work.times, work.times, 1
        at, items = np.concatenate([owners, work.at]), np.concatenate([known, new])
        order = np.lexsort((items["start"], at))
        at, items = at[order], items[order]
        if not len(at):
            return at, items
        # Ends ascend within a key, as far as they matter: no end of one key reaches into the next.
        base = items["start"].min()
        span = items["end"].max() - base + self.gap + 1
        reach = np.maximum.accumulate(items["end"] - base + at * span)
        begins = np.ones(len(at), bool)
        begins[1:] = (at[1:] != at[:-1]) | (items["start"][1:] - base + at[1:] * span >= reach[:-1] + self.gap)
        first = np.flatnonzero(begins)
        whole = np.empty(len(first), _ITEM)
        whole["start"] = items["start"][first]
        whole["end"] = np.maximum.reduceat(items["end"], first)
        whole["count"] = np.add.reduceat(items["count"], first)
        return at[first], whole


def _by_key(at: np.ndarray, items: np.ndarray, keys: int) -> pa.Array:
    ends = np.searchsorted(at, np.arange(keys + 1)).astype(np.int32) * _ITEM.itemsize
    data = packed(items).buffers()[2]
    return pa.Array.from_buffers(pa.binary(), keys, [None, pa.py_buffer(ends.astype(np.int32)), data])
