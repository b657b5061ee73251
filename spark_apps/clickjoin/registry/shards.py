"""Shards by a timeline keyed by event time: an event finds its shard by its own time (Photon, section 2.2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clickjoin.errors import LakeError
from clickjoin.events import crc_of
from clickjoin.lake import Txn
from clickjoin.lake.extent import timestamp

if TYPE_CHECKING:
    from clickjoin.lake import SmallTables

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Timeline:
    """Entries (from event time, number of shards), oldest first; the first holds since ever."""

    entries: tuple[tuple[datetime, int], ...]

    def shards_at(self, event_time: datetime) -> int:
        """Number of shards that an event of this time is spread over."""
        return next((n for since, n in reversed(self.entries) if event_time >= since), self.entries[0][1])

    def shard_of(self, event_id: str, event_time: datetime) -> int:
        """The shard of an event."""
        return crc_of(event_id) % self.shards_at(event_time)

    def sql(self) -> str:
        """The same rule as Spark SQL over columns `event_id` and `event_time`."""
        count = str(self.entries[0][1])
        for since, shards in self.entries[1:]:
            count = f"CASE WHEN event_time >= {timestamp(since)} THEN {shards} ELSE {count} END"
        return f"CAST(crc32(encode(event_id, 'UTF-8')) % ({count}) AS INT)"


def load_timeline(small: SmallTables) -> Timeline:
    """The pipeline's timeline. Errors: LakeError where it has no entry."""
    rows = small.read("timeline").to_pylist()
    if not rows:
        raise LakeError(f"{small.path('timeline')}: holds no entry", remedy="Run `clickjoin init`")
    return Timeline(tuple(sorted((row["from_time"], row["shards"]) for row in rows)))


def start_timeline(small: SmallTables, shards: int, now: datetime) -> None:
    """Write the first entry, once for ever: the configured number of shards counts at creation only."""
    small.append("timeline", [{"from_time": _EPOCH, "shards": shards, "added_at": now}], Txn("timeline", 0))
