"""The oldest event time that the registry answers for, per shard, as plain data (Photon, section 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from clickjoin.model.extent import timestamp

Boundary = Mapping[int, datetime]


def expired_sql(boundary: Boundary) -> str:
    """Whether an event is older than its shard's boundary: Spark SQL over columns `shard` and `event_time`."""
    if not boundary:
        return "FALSE"
    if len(set(boundary.values())) == 1:
        shards = ", ".join(str(shard) for shard in sorted(boundary))
        return f"(shard IN ({shards}) AND event_time < {timestamp(next(iter(boundary.values())))})"
    cases = " ".join(f"WHEN {shard} THEN {timestamp(moment)}" for shard, moment in sorted(boundary.items()))
    return f"COALESCE(event_time < CASE shard {cases} END, FALSE)"
