"""Why a foreign event has not been joined: its primary event has not landed, or lies elsewhere. No Spark."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from clickjoin.model.ids import bucket_of, micros_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader

_NEAR = timedelta(days=1)  # around the time that is looked for, where another spelling of the id may lie
_ALIKE = 3  # other spellings that are named
_NOT_LANDED = "Its primary event {id!r} has not landed"


def why_unjoined(pipeline: Pipeline, delta: DeltaReader, event: Mapping[str, Any]) -> str:
    """A sentence on one event. It holds primary_id, event_time and primary_time (None where that is not known)."""
    wanted = event.get("primary_id")
    if not wanted or pipeline.primary is None:
        return ""
    landed = delta.read("primary", [("event_id", "=", wanted)], ["event_id", "event_time"])
    times = sorted(set(landed["event_time"].to_pylist()))
    named = event.get("primary_time")
    if pipeline.around is None:
        return _at_a_time(wanted, named, times) or _otherwise_spelt(delta, wanted, named)
    own = event["event_time"]
    low, high = (
        own - timedelta(microseconds=pipeline.around.back), own + timedelta(microseconds=pipeline.around.ahead)
    )  # fmt: skip
    if any(low <= at <= high for at in times):
        return f"Its primary event {wanted!r} has landed since: the next try joins it"
    if not times:
        return _otherwise_spelt(delta, wanted, own)
    near = min(times, key=lambda at: abs(at - own))
    if near > high:
        return (
            f"Its primary event {wanted!r} has landed and lies {_text(near - own)} after it ({near.isoformat()}), "
            "which is more than foreign.primary_time.skew: raise that, or set the clock that is ahead"
        )
    return (
        f"Its primary event {wanted!r} has landed and lies {_text(own - near)} before it ({near.isoformat()}), "
        "which is outside of foreign.primary_time.lookback"
    )


def _at_a_time(wanted: str, named: datetime | None, times: Sequence[datetime]) -> str:
    if not times or named is None:
        return ""
    if named in times:
        return f"Its primary event {wanted!r} has landed since: the next try joins it"
    near = min(times, key=lambda at: abs(at - named))
    finer = "; its copy of the time is coarser" if abs(near - named) < timedelta(seconds=1) else ""
    return (
        f"A primary event {wanted!r} has landed, but is of {near.isoformat()}, and it names one of {named.isoformat()} "
        f"({_text(abs(near - named))} apart{finer}): with primary_time {{lookback: …}} the time need not be the same"
    )


def _otherwise_spelt(delta: DeltaReader, wanted: str, near: datetime | None) -> str:
    """Whether an id that has landed differs only in case or blanks, among those of a day before and after."""
    said = _NOT_LANDED.format(id=wanted)
    if near is None:
        return said
    around = [("event_time", ">=", near - _NEAR), ("event_time", "<=", near + _NEAR)]
    ids = delta.read("primary", around, ["event_id"])["event_id"].unique()
    same = pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(ids)), wanted.strip().lower())
    alike = ids.filter(same).to_pylist()[:_ALIKE]
    if alike:
        return f"{said}, but {', '.join(map(repr, alike))} has: ids are compared as they stand, with case and blanks"
    return said


def _text(length: timedelta) -> str:
    seconds = length / timedelta(seconds=1)
    return f"{length}" if seconds >= 60 else f"{seconds:g} s"


def clicks_of(pipeline: Pipeline, delta: DeltaReader, event_id: str, at: datetime) -> list[dict[str, Any]]:
    """Foreign events that name a primary event, each once: `table`, event_id, event_time; at most 100 a table."""
    around = pipeline.around
    since = at - timedelta(microseconds=around.ahead) if around else at - _NEAR
    bucket = bucket_of(max(micros_of(since), 0), int(pipeline.registry.bucket))
    found: dict[Any, dict[str, Any]] = {}
    for name in ("joined", "pending", "unjoinable"):
        where = [("primary_id", "=", event_id), ("bucket", ">=", bucket)]
        rows = delta.read(name, where, ["event_id", "event_time"]).slice(0, 100).to_pylist()
        for row in rows:
            found.setdefault(tuple(row.values()), {"table": name, **row})
    return list(found.values())
