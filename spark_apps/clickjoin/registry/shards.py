"""Shards by a timeline keyed by event time: an event finds its shard by its own time (Photon, section 2.2.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.errors import ConfigError, LakeError
from clickjoin.events import EPOCH, crc_of
from clickjoin.lake import Txn
from clickjoin.lake.extent import timestamp

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake import SmallTables


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


def load_timeline(small: SmallTables) -> Timeline:
    """The pipeline's timeline: its entries in force. Errors: LakeError where it has no entry.

    An entry is in force once it is fenced in the journal (see registry.reshard); the first one is from the start.
    """
    rows = small.read("timeline", columns=["from_time", "shards"]).to_pylist()
    if not rows:
        raise LakeError(f"{small.path('timeline')}: holds no entry", remedy="Run `clickjoin init`")
    held = [row for row in rows if row["from_time"] == EPOCH or in_force(small, row["from_time"])]
    return Timeline(tuple(sorted((row["from_time"], row["shards"]) for row in held)))


def fence(since: datetime) -> Txn:
    """What the journal holds of an entry that is in force."""
    return Txn(f"timeline/{round((since - EPOCH).total_seconds())}", 1)


def in_force(small: SmallTables, since: datetime) -> bool:
    """Whether an entry from a time on has been fenced."""
    return small.settled_txn("batches", fence(since).app_id) >= 1


def start_timeline(small: SmallTables, pipeline: Pipeline, now: datetime) -> None:
    """Write the first entry, once for ever: the configured number of shards counts at creation only.

    Errors: ConfigError where the lake was begun with another width of bucket or another kind of event time: then the
    same id would be looked for in another bucket than the one it was claimed in.
    """
    wanted = _fixed(pipeline)
    first = {"from_time": EPOCH, "shards": pipeline.registry.shards, "added_at": now, **wanted}
    if not small.append("timeline", [first], Txn("timeline", 0)):
        require_same(small, pipeline)


def require_same(small: SmallTables, pipeline: Pipeline) -> None:
    """Check that a lake was begun with what the pipeline's file says now. Errors: ConfigError, as of start_timeline."""
    wanted = _fixed(pipeline)
    for row in small.read("timeline").to_pylist():
        for name, field in (("bucket_seconds", "registry.bucket"), ("event_time", "foreign.event_time")):
            if row[name] not in (None, wanted[name]):
                raise ConfigError(
                    f"{field} is {wanted[name]} in the pipeline's file, and the lake was begun with {row[name]}",
                    remedy="Set it back, or begin another lake: claims would be looked for in the wrong buckets",
                )


def _fixed(pipeline: Pipeline) -> dict[str, int | str]:
    return {"bucket_seconds": int(pipeline.registry.bucket), "event_time": pipeline.foreign.event_time}
