"""What a batch reads of a source, and how far a source has been planned: as frozen data for the journal.

What stands in a `payload` is the source's own business: plain JSON data that nobody else looks into.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SplitKey = tuple[str, str, int, str]  # stream, replica, batch, partition


@dataclass(frozen=True)
class SourceOffset:
    """How far one partition of a source has been planned.

    `partition`: an ordered part of the source, such as a file, a table or a partition of a topic. Its name stays the
    same for as long as its content does, and no other content ever gets it.
    """

    partition: str
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Split:
    """Records of one partition that one batch reads; of a partition a batch reads one split at most.

    `path` says to people where that lies. `events` and `bytes` are estimates, for throttling and progress.
    """

    partition: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""
    events: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class PlannedSplit:
    """A split of a stream that a settled batch has read, unless it was `lost`. `planned`: microseconds since 1970."""

    replica: str
    batch: int
    stream: str
    planned: int
    split: Split
    lost: bool = False

    @property
    def key(self) -> SplitKey:
        """Stream, replica, batch, partition: there is one split of it."""
        return self.stream, self.replica, self.batch, self.split.partition


@dataclass(frozen=True)
class LastRecord:
    """The last good record that landed of one partition. `offset` and `length` as its source gave them."""

    partition: str
    path: str
    offset: int
    length: int
    event_id: str


@dataclass(frozen=True)
class Budget:
    """How much one batch may read of one stream."""

    max_events: int
    max_bytes: int


@dataclass(frozen=True)
class Problem:
    """Something about a source that people should know.

    `kind`: unreadable | lost-tail | unfinished-line | unfinished-file | missing | not-begun | rewritten |
    source-lost | not-committed | quarantined | broken-file | misfits | nothing-joined.
    """

    kind: str
    path: str
    detail: str
    offset: int = 0
    length: int = 0


@dataclass(frozen=True)
class SourcePlan:
    """What to read next and what is left. `offsets`: only those that changed. Backlog: what stays unplanned.

    `watermark`: the time (microseconds) before which no event is unread once these splits are, from a source that
    knows it; where it is None it is derived (see dispatcher/watermarks.py), unless it is not to be (`derived`).
    `lag`: how many records each partition has left, by the path that people know it by, from a source that counts them.
    `unfinished`: the last bytes before each line that is not finished yet, which tell about when it will be of.
    """

    splits: tuple[Split, ...] = ()
    offsets: tuple[SourceOffset, ...] = ()
    backlog_bytes: int = 0
    backlog_events: int = 0
    problems: tuple[Problem, ...] = field(default=())
    watermark: int | None = None
    lag: Mapping[str, int] = field(default_factory=dict)
    derived: bool = True
    unfinished: tuple[Split, ...] = ()
