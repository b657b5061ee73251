"""Sessions: events of a key with no gap between them that is as long as a given one; late events correct them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from clickjoin.processors.durations import microseconds
from clickjoin.processors.packing import pack_items, unpack_items
from clickjoin.processors.port import NEVER, Done, Outlook, Processor, Work, signals

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

# `said`: 1 of one that was reported, which is kept while late events may come.
_ITEM = np.dtype([("start", "<i8"), ("end", "<i8"), ("count", "<i8"), ("revision", "<i4"), ("said", "<i4")])
Rows = Any  # an array of _ITEM


class SessionWindows(Processor):
    """First and last event of a session, and how many, once the watermark is `gap` behind its last event."""

    state: ClassVar[pa.Schema] = pa.schema([("open", pa.binary())])
    fixed: ClassVar[tuple[str, ...] | None] = ("gap",)
    corrects: ClassVar[bool] = True

    def __init__(self, gap: str = "30m") -> None:
        self.gap = microseconds(gap, "gap")

    def process(self, work: Work) -> Done:
        """See Processor."""
        reported = list[pa.Table]()
        at, items = self._sessions(work, reported)
        ended = items["end"] + self.gap <= work.watermark
        new = ended & (items["said"] == 0)
        reported.append(_signals(at[new], items[new]))
        items["said"] = ended
        timers = np.full(len(work.keys), NEVER, np.int64)
        until = items["end"] + self.gap + np.where(ended, work.lateness, 0)
        kept = until > work.watermark
        np.minimum.at(timers, at[kept], until[kept])
        state = pa.table({"open": pack_items(at[kept], items[kept], len(work.keys))})
        return Done(state, timers, timers == NEVER, pa.concat_tables(reported))

    def outlook(self, state: pa.Table, watermark: int, began: int) -> Outlook:
        """See Processor."""
        _, items = unpack_items(state["open"], _ITEM)
        items = items[items["said"] == 0]
        return Outlook(tuple((int(item["start"]), int(item["end"]), int(item["count"])) for item in items))

    def _sessions(self, work: Work, reported: list[pa.Table]) -> tuple[Ints, Rows]:
        """All sessions that are kept, those that meet made one: position of the key, and the session.

        Those that were reported and are part of another now are retracted.
        """
        owners, known = unpack_items(work.state["open"], _ITEM)
        new = np.zeros(len(work.at), _ITEM)
        new["start"], new["end"], new["count"] = work.times, work.times, 1
        at, items = np.concatenate([owners, work.at]), np.concatenate([known, new])
        # Of one start the known one comes first: it says which revision is the next.
        order = np.lexsort((-items["count"] * (np.arange(len(at)) < len(known)), items["start"], at))
        at, items = at[order], items[order]
        if not len(at):
            return at, items
        first = self._first(at, items)
        many = np.diff(np.append(first, len(at))) > 1
        taken_back = (items["said"] == 1) & np.repeat(many, np.diff(np.append(first, len(at))))
        reported.append(_signals(at[taken_back], items[taken_back], retracted=True))
        whole = items[first]
        whole["end"] = np.maximum.reduceat(items["end"], first)
        whole["count"] = np.add.reduceat(items["count"], first)
        whole["revision"] += whole["said"] * many
        whole["said"] *= ~many
        return at[first], whole

    def _first(self, at: Ints, items: Rows) -> Ints:
        """Where each session begins in sessions and events by key and start."""
        # The latest end so far of each key. Ends by rank: keys times microseconds are more than 64 bits hold.
        ends, rank = np.unique(items["end"], return_inverse=True)
        reach = ends[np.maximum.accumulate(at * len(ends) + rank) % len(ends)]
        begins = np.ones(len(at), bool)
        begins[1:] = (at[1:] != at[:-1]) | (items["start"][1:] >= reach[:-1] + self.gap)
        return np.flatnonzero(begins)


def _signals(at: Ints, items: Rows, *, retracted: bool = False) -> pa.Table:
    return signals(
        of=at, kind=np.full(len(at), "session"), window_start=items["start"], window_end=items["end"],
        count=items["count"], revision=items["revision"].astype(np.int64), retracted=np.full(len(at), retracted),
    )  # fmt: skip
