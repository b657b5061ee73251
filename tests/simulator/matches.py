"""Joins by a key and time: keys for both streams, and an oracle that picks by reading the rules aloud.

Logs are out of order by less than the watermark is behind: whoever decides an event has all that could be picked.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from tests.simulator.logs import Logs, event_id, moment
from tests.simulator.values import micros
from tests.simulator.world import START, Violation

if TYPE_CHECKING:
    from collections.abc import Iterable

WITHIN = 30  # seconds
_KEYS = ("ann", "bo", "nobody's", "")


def write(streams: Logs, rng: random.Random) -> None:
    """Give records keys in place of names of queries; the last record is a query after which every click is decided."""
    streams.is_missing_at_first = True
    keys: dict[str, str] = {}  # copies of a record have its key
    for row in (*streams.primary, *streams.foreign):
        if "event_id" in row:
            mine = _KEYS[:2] if "primary_id" not in row else _KEYS
            row["primary_id"] = keys.setdefault(row["event_id"], mine[int(rng.random() ** 2 * len(mine))])
            row.pop("primary_time", None)
            row["payload"] = json.dumps({"event_id": row["event_id"], "key": row["primary_id"]})
    last = max(row["due"] for row in (*streams.primary, *streams.foreign)) - START + 100
    beat = {"event_id": event_id("beat", last), "event_time": moment(last), "primary_id": "beat", "due": START + last}
    streams.primary.append(beat | {"payload": json.dumps({"event_id": beat["event_id"]})})


def require_right(streams: Logs, joined: Iterable[dict[str, Any]], given_up: Iterable[dict[str, Any]]) -> None:
    """Every event that was decided has the last query of its key within so many seconds, or there is none."""
    clicks = {row["event_id"]: row for row in streams.foreign if "event_id" in row}
    for row in joined:
        if (right := _last(streams, clicks[row["event_id"]])) != row["primary_id"]:
            raise Violation(f"joined wrongly: {row['event_id']} to {row['primary_id']}, the last is {right}")
        if row["event_id"] not in row["foreign_record"] or row["primary_id"] not in row["primary_record"]:
            raise Violation(f"joined wrongly: {row['event_id']} has {row['primary_record']}")
    for row in given_up:
        if right := _last(streams, clicks[row["event_id"]]):
            raise Violation(f"given up: {row['event_id']}, though it has {right}")


def _last(streams: Logs, click: dict[str, Any]) -> str | None:
    at = micros(click["event_time"])
    fits = [
        (micros(row["event_time"]), row["event_id"].encode(), row["event_id"])
        for row in streams.primary
        if click["primary_id"] and row["primary_id"] == click["primary_id"]
        and 0 <= at - micros(row["event_time"]) <= WITHIN * 1_000_000
    ]  # fmt: skip
    return max(fits)[2] if fits else None
