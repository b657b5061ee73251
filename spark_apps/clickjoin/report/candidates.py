"""Joins by a key and time: among which primary events one was picked for an event, and why. No Spark."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from clickjoin.kernel.parquet_rows import PREFERRED
from clickjoin.model.ids import COPIES_WITHIN

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader

MOST = 20
_LATE = " by now: it landed too late, rebuild the date to take it up"
_COPIES = timedelta(microseconds=COPIES_WITHIN)


def candidates(
    pipeline: Pipeline,
    delta: DeltaReader,
    event: Mapping[str, Any],
    joined: str | None,
    kept: Set[tuple[str, str]] = frozenset(),
) -> dict[str, Any]:
    """`count` of primary events with an event's key in its window and an hour about it, and the `events` nearest to
    where one is picked, at most MOST, in order: event_id, event_time, landed_at, `why` each is joined or not.

    `event`: its row of `foreign` (event_id, event_time, the key as primary_id); `joined`: the id that it was joined to;
    `kept`: id and time (ISO 8601) of each of its touches, where its row has all.
    """
    match, around = pipeline.match, pipeline.around
    if not match or not around or not event["primary_id"]:
        return {"count": 0, "events": []}
    low, high = (event["event_time"] + timedelta(microseconds=each) for each in (-around.back, around.ahead))
    key = [("match_key", "=", event["primary_id"])]
    when = [("event_time", ">=", low - _COPIES), ("event_time", "<=", high + _COPIES)]
    rows = delta.read("primary", [*key, *when], ["event_id", "event_time", "landed_at", PREFERRED]).to_pylist()
    landed: dict[tuple[datetime, str], datetime] = {}
    preferred = set()
    for row in rows:
        place = row["event_time"], row["event_id"]
        landed[place] = min(row["landed_at"], landed.get(place, row["landed_at"]))
        preferred |= {place} if row[PREFERRED] else set()
    found = []
    for at, name in sorted(landed, key=lambda item: (item[0], item[1].encode())):
        is_copy = any(other == name and at - _COPIES <= then < at for then, other in landed)
        why = _why(name, event["event_id"], (low, at, high), is_copy=is_copy)
        found.append({"event_id": name, "event_time": at, "landed_at": landed[at, name], "why": why})
    if match.pick == "all":
        _mark_all(found, kept if joined else None, match.most)
    else:
        _mark(found, joined, match.pick, preferred if match.prefer else None)
    some = found[:MOST] if match.pick == "first" else found[-MOST:]
    return {"count": len(found), "events": [_plain(one) for one in some]}


def _why(name: str, own: str, times: tuple[datetime, datetime, datetime], *, is_copy: bool) -> str:
    """Why a primary event cannot be joined; empty where it can."""
    low, at, high = times
    if name == own:
        return "the event itself"
    if is_copy:
        return "a copy of one up to an hour before"
    return "before match.within" if at < low else "after the event" if at > high else ""


def _mark(found: list[dict[str, Any]], joined: str | None, pick: str, preferred: set[Any] | None) -> None:
    """Say of those that can be joined which was, and which would be by now."""
    whole = able = [one for one in found if not one["why"]]
    if preferred is not None:
        able = [one for one in whole if (one["event_time"], one["event_id"]) in preferred] or whole
    for one in whole:
        one["why"] = f"not the {pick}" if one in able else "not preferred"
    if able:
        chosen = able[-1] if pick == "last" else able[0]
        chosen["why"] = f"the {pick}"
    for one in whole:
        if joined and one["event_id"] == joined:
            one["why"] += ", joined"
        elif joined and one["why"] == f"the {pick}":
            one["why"] += _LATE


def _mark_all(found: list[dict[str, Any]], kept: Set[tuple[str, str]] | None, most: int) -> None:
    """Say of those that can be joined where each stands by now, and whether it was; `kept`: None where none was yet."""
    whole = [one for one in found if not one["why"]]
    for number, one in enumerate(whole, 1):
        one["why"] = f"touch {number} of {len(whole)}"
        if kept is None:
            continue
        if (one["event_id"], one["event_time"].isoformat()) in kept:
            one["why"] += ", joined"
        elif 1 < number <= len(whole) - most + 1:
            one["why"] += ", left out by match.limit"
        else:
            one["why"] += _LATE


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
