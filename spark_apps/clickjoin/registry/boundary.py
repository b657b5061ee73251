"""The oldest event time that the registry still answers for, per shard; it only moves forward (Photon, section 2.3).

Beside it the floor of table `primary`: no batch planned after it moved joins to a primary event from before it, so
that such events can go without taking one from under a batch that has claimed and not yet published.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from clickjoin.lake.extent import timestamp

if TYPE_CHECKING:
    from clickjoin.lake import SmallTables

Boundary = Mapping[int, datetime]
PRIMARY = -1  # in the place of a shard: the floor of table `primary`


def load_bounds(small: SmallTables) -> tuple[dict[int, datetime], datetime | None]:
    """Boundary by shard (one without answers for all time), and the floor of `primary`, in one look."""
    newest: dict[int, datetime] = {}
    for row in small.read("boundary").to_pylist():
        newest[row["shard"]] = max(row["boundary"], newest.get(row["shard"], row["boundary"]))
    floor = newest.pop(PRIMARY, None)
    return newest, floor


def load_boundary(small: SmallTables) -> dict[int, datetime]:
    """Boundary by shard alone."""
    return load_bounds(small)[0]


def lift_floor(small: SmallTables, to: datetime, now: datetime) -> None:
    """Move the floor of `primary` forward; where it is that far already, it stays."""
    floor = load_bounds(small)[1]
    if floor is None or floor < to:
        small.append("boundary", [{"shard": PRIMARY, "boundary": to, "at": now}])


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
