"""Shards by a timeline keyed by event time, and the oldest event time that each answers for (Photon, 2.2.2 and 2.3).

An event finds its shard by its own time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from clickjoin.model.extent import timestamp
from clickjoin.model.ids import EPOCH, crc_of


@dataclass(frozen=True)
class Timeline:
    """Entries (from event time, number of shards), oldest first; the first holds since ever."""

    entries: tuple[tuple[datetime, int], ...]

    @property
    def most(self) -> int:
        """The largest number of shards that it ever names."""
        return max(count for _, count in self.entries)

    def shards_at(self, event_time: datetime) -> int:
        """Number of shards that an event of this time is spread over."""
        return next((n for since, n in reversed(self.entries) if event_time >= since), self.entries[0][1])

    def shard_of(self, event_id: str, event_time: datetime) -> int:
        """The shard of an event."""
        return self.shards_of([event_id], [_micros(event_time)])[0]

    def shards_of(self, event_ids: Iterable[str], micros: Iterable[int]) -> list[int]:
        """The shards of some events, by their ids and times (microseconds)."""
        since, counts = self.steps
        return [crc_of(name) % counts[bisect_right(since, at)] for name, at in zip(event_ids, micros, strict=True)]

    @property
    def steps(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """When the number of shards changes (microseconds), and the numbers before, between and after."""
        return tuple(_micros(moment) for moment, _ in self.entries[1:]), tuple(count for _, count in self.entries)

    def sql(self) -> str:
        """The same rule as Spark SQL over columns `event_id` and `event_time`."""
        count = str(self.entries[0][1])
        for since, shards in self.entries[1:]:
            count = f"CASE WHEN event_time >= {timestamp(since)} THEN {shards} ELSE {count} END"
        return f"CAST(crc32(encode(event_id, 'UTF-8')) % ({count}) AS INT)"


def _micros(moment: datetime) -> int:
    return round((moment - EPOCH) / timedelta(microseconds=1))


Boundary = Mapping[int, datetime]


def claims_since(boundary: Boundary, repeats: float) -> Boundary:
    """From when on the registry holds claims: beyond its boundary by `repeats` (seconds), where an id alone is a name.

    An event at the boundary can repeat one that is that much older by its own time, and has to meet its claim.
    """
    return {shard: at - timedelta(seconds=repeats) for shard, at in boundary.items()}


def expired_sql(boundary: Boundary) -> str:
    """Whether an event is older than its shard's boundary: Spark SQL over columns `shard` and `event_time`."""
    if not boundary:
        return "FALSE"
    if len(set(boundary.values())) == 1:
        shards = ", ".join(str(shard) for shard in sorted(boundary))
        return f"(shard IN ({shards}) AND event_time < {timestamp(next(iter(boundary.values())))})"
    cases = " ".join(f"WHEN {shard} THEN {timestamp(moment)}" for shard, moment in sorted(boundary.items()))
    return f"COALESCE(event_time < CASE shard {cases} END, FALSE)"
