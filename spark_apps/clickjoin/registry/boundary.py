"""The oldest event time that the registry still answers for, per shard; it only moves forward (Photon, section 2.3).

Beside it the floor of table `primary`: no batch planned after it moved joins to a primary event from before it, so
that such events can go without taking one from under a batch that has claimed and not yet published.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clickjoin.engines.tables_port import Tables
    from clickjoin.lake.delta_reader import DeltaReader

PRIMARY = -1  # in the place of a shard: the floor of table `primary`


def load_bounds(delta: DeltaReader) -> tuple[dict[int, datetime], datetime | None]:
    """Boundary by shard (one without answers for all time), and the floor of `primary`, in one look."""
    newest: dict[int, datetime] = {}
    for row in delta.read("registry_boundary").to_pylist():
        newest[row["shard"]] = max(row["boundary"], newest.get(row["shard"], row["boundary"]))
    floor = newest.pop(PRIMARY, None)
    return newest, floor


def load_boundary(delta: DeltaReader) -> dict[int, datetime]:
    """Boundary by shard alone."""
    return load_bounds(delta)[0]


def lift_floor(delta: Tables, to: datetime, now: datetime) -> None:
    """Move the floor of `primary` forward; where it is that far already, it stays."""
    floor = load_bounds(delta)[1]
    if floor is None or floor < to:
        delta.append("registry_boundary", [{"shard": PRIMARY, "boundary": to, "at": now}])


def advance(delta: Tables, shards: int, to: datetime, now: datetime) -> None:
    """Move the boundary of shards 0 to n-1 forward; where it is that far already, it stays."""
    at = load_boundary(delta)
    rows = [{"shard": shard, "boundary": to, "at": now} for shard in range(shards) if shard not in at or at[shard] < to]
    if rows:
        delta.append("registry_boundary", rows)
