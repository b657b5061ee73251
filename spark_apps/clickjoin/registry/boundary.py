"""The oldest event time that the registry still answers for, per shard; it only moves forward (Photon, section 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from clickjoin.lake.extent import timestamp

if TYPE_CHECKING:
    from clickjoin.lake import SmallTables

Boundary = Mapping[int, datetime]


def load_boundary(small: SmallTables) -> dict[int, datetime]:
    """Boundary by shard; a shard without one answers for all time."""
    newest: dict[int, datetime] = {}
    for row in small.read("boundary").to_pylist():
        newest[row["shard"]] = max(row["boundary"], newest.get(row["shard"], row["boundary"]))
    return newest


def advance(small: SmallTables, shards: int, to: datetime, now: datetime) -> None:
    """Move the boundary of shards 0 to n-1 forward; where it is that far already, it stays."""
    at = load_boundary(small)
    rows = [{"shard": shard, "boundary": to, "at": now} for shard in range(shards) if shard not in at or at[shard] < to]
    if rows:
        small.append("boundary", rows)


def expired_sql(boundary: Boundary) -> str:
    """Whether an event is older than its shard's boundary: Spark SQL over columns `shard` and `event_time`."""
    if not boundary:
        return "FALSE"
    if len(set(boundary.values())) == 1:
        shards = ", ".join(str(shard) for shard in sorted(boundary))
        return f"(shard IN ({shards}) AND event_time < {timestamp(next(iter(boundary.values())))})"
    cases = " ".join(f"WHEN {shard} THEN {timestamp(moment)}" for shard, moment in sorted(boundary.items()))
    return f"COALESCE(event_time < CASE shard {cases} END, FALSE)"
