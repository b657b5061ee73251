"""A lake made by hand, so that the status page can be tried without Spark: two replicas, a week of dates, one event."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.batch_plan import COUNTS, STEPS
from clickjoin.model.ids import EPOCH, bucket_at
from clickjoin.schemas import ALL, JOINED
from clickjoin.schemas.arrow import arrow_schema
from tests.airflow.site.furnish import furnish

DAYS = 5
TOKEN = "shop/main/join/7"
SESSION = 9_007_199_254_740_993  # more than a browser's own numbers hold
# What the adapter makes comes after the table's own columns.
_ADAPTED = pa.schema(
    [*arrow_schema(JOINED), pa.field("foreign_record", pa.string()), pa.field("primary_record", pa.string())]
)


class Shop:
    """Its tables, its dates (oldest first), and the id of an event that was joined."""

    def __init__(self, root: Path, now: datetime) -> None:
        self.delta, self.now = ArrowTables(str(root)), now
        for table in ALL:
            self.delta.create(table)
        self.dates = [now.date() - timedelta(days=DAYS - number) for number in range(DAYS)]
        self.event = f"10.0.0.2:7:{int(self._noon(self.dates[0]).timestamp() * 1e6)}"
        self._batches()
        self._events()
        small_counts = {"pending": 0, "unjoinable": 1, "expired": 0, "filtered": 0}
        furnish(root, {day: {"joined": 3, **small_counts} for day in self.dates})

    def _noon(self, day: date) -> datetime:
        return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)

    def _batches(self) -> None:
        self.delta.append(
            "shard_timeline", [{"from_time": EPOCH, "shards": 4, "added_at": self.now, "bucket_seconds": 3600}]
        )
        rows = []
        for replica in ("main", "west"):
            planned = {"replica": replica, "sequence": "join", "batch": 1, "state": "planned", "at": self.now}
            positions = json.dumps({"splits": {}, "offsets": {}})
            self.delta.append(
                "journal", [planned | {"snapshot": True, "plan": positions}, planned | {"state": "settled"}]
            )
            rows += [self._metric(replica, number, ago=300 * (287 - number)) for number in range(288)]
        self.delta.append("metrics", rows)

    def _metric(self, replica: str, number: int, ago: float) -> dict[str, Any]:
        at = self.now - timedelta(seconds=ago)
        row: dict[str, Any] = {
            "replica": replica,
            "sequence": "join",
            "batch": number,
            "planned_at": at,
            "settled_at": at,
        }
        row |= dict.fromkeys(COUNTS, 0) | {"events_in": 120, "joined": 100 + number % 20, "backlog_events": number % 7}
        row |= {"latency_p50": 1.5, "latency_p90": 2.5, "latency_p99": 4.0, "backlog_bytes": 0, "repeats": number % 3}
        row["watermark"] = at - timedelta(seconds=4)
        return row | {f"seconds_{step}": 0.3 for step in STEPS}

    def _events(self) -> None:
        for day in self.dates:
            at = self._noon(day)
            ids = [f"10.0.0.2:7:{int(at.timestamp() * 1e6) + number}" for number in range(3)]
            whole = [{"event_id": name, "event_time": at, "bucket": bucket_at(at, 3600)} for name in ids]
            landed = {
                "primary_id": "10.0.0.1:7:1",
                "payload": json.dumps({"position": 1, "session": SESSION}),
                "path": "clicks.jsonl",
            }
            self.delta.append("foreign", [row | landed | {"shard": 0, "batch": 7, "replica": "main"} for row in whole])
            self.delta.append("registry", [row | {"shard": 0, "token": TOKEN, "outcome": "joined"} for row in whole])
            both = {
                "foreign_record": json.dumps({"position": 1, "session": SESSION}),
                "primary_record": json.dumps({"terms": ["a", {}]}),
            }
            rows = [row | {"event_date": at.date(), "token": TOKEN, "replica": "main"} | both for row in whole]
            table = pa.Table.from_pylist(rows, _ADAPTED)
            write_deltalake(self.delta.path("joined"), table, mode="append", schema_mode="merge")
            self.delta.append("unjoinable", [{**whole[0], "event_id": f"10.0.0.9:7:{int(at.timestamp() * 1e6)}"}])
