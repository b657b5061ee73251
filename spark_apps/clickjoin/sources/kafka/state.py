"""Payloads of a topic's splits and offsets, and the names of its partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from clickjoin.model.split import SourceOffset, Split


@dataclass(frozen=True)
class Place:
    """A partition of one topic of one cluster; a topic that was made again has another id, and so other places."""

    cluster: str
    topic_id: str
    number: int

    def __str__(self) -> str:
        return f"{self.cluster}/{self.topic_id}/{self.number}"

    @classmethod
    def of(cls, partition: str) -> Place:
        """The place that a partition's name names."""
        cluster, topic_id, number = partition.rsplit("/", 2)
        return cls(cluster, topic_id, int(number))


class Mark(NamedTuple):
    """A message that was planned: its offset, and a digest of it."""

    offset: int
    digest: str


@dataclass(frozen=True)
class Position:
    """How far a partition has been planned: up to before offset `next`.

    `end`: where it ended when that was last noted; `at`: when, in seconds since 1970. `state`: live | gone. `marks`:
    some of the messages before `next`, the newest first.
    """

    place: Place
    topic: str
    next: int
    end: int
    at: float
    state: str = "live"
    marks: tuple[Mark, ...] = ()

    @classmethod
    def of(cls, offset: SourceOffset) -> Position:
        """From the journal."""
        found = cls(Place.of(offset.partition), **offset.payload)
        return replace(found, marks=tuple(Mark(*mark) for mark in found.marks))

    def to_offset(self) -> SourceOffset:
        """For the journal."""
        payload: dict[str, Any] = asdict(self)
        del payload["place"]
        return SourceOffset(str(self.place), payload)


@dataclass(frozen=True)
class Range:
    """Offsets [start, end) of a partition, as one batch reads them."""

    place: Place
    topic: str
    start: int
    end: int

    @classmethod
    def of(cls, split: Split) -> Range:
        """From the journal."""
        return cls(Place.of(split.partition), **split.payload)

    @property
    def path(self) -> str:
        """Where it lies, for people."""
        return path_of(self.topic, self.place.number)

    def to_split(self, events: int, size: int) -> Split:
        """For the journal; `events` and `size` (bytes) are estimates."""
        payload: Mapping[str, Any] = {"topic": self.topic, "start": self.start, "end": self.end}
        return Split(str(self.place), payload, self.path, events, size)


def path_of(topic: str, number: int) -> str:
    """A partition, for people."""
    return f"kafka:{topic}/{number}"
