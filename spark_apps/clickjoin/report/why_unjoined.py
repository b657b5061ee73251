"""Why a foreign event has not been joined: its primary event has not landed, or lies elsewhere. No Spark."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.model.ids import bucket_of, micros_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.model.ids import Around

_NEAR = timedelta(days=1)  # around the time that is looked for, where another spelling of the id may lie
_CLOCKS = timedelta(minutes=25)  # as far off no clock is, and zones differ by half an hour
_ALIKE = 3  # other spellings that are named
_MARKS = r"[-{}]"
_ROUNDED = r"^[0-9]{16,19}$"  # what a floating-point number cannot hold


def why_unjoined(pipeline: Pipeline, delta: DeltaReader, event: Mapping[str, Any]) -> str:
    """A sentence on one event. It holds primary_id, event_time and primary_time (None where that is not known)."""
    return why_each(pipeline, delta, [event])[0]


def why_each(pipeline: Pipeline, delta: DeltaReader, events: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same on each of some events: the ids of table `primary` are read as often as for one."""
    wanted = set(filter(None, map(_id, events)))
    if pipeline.match:
        return _by_key(pipeline, delta, events, wanted)
    if not wanted or pipeline.primary is None:
        return [""] * len(events)
    times: dict[str, set[datetime]] = defaultdict(set)
    for row in delta.read("primary", [_named(wanted)], ["event_id", "event_time"]).to_pylist():
        times[row["event_id"]].add(row["event_time"])
    said = [_by_times(pipeline.around, event, sorted(times.get(_id(event), ()))) for event in events]
    near = "primary_time" if pipeline.around is None else "event_time"
    absent = [
        (_id(event), event.get(near)) if _id(event) and not text else None
        for event, text in zip(events, said, strict=True)
    ]
    alike = _otherwise_spelt(delta, [(name, at) for name, at in filter(None, absent) if at])
    return [
        _not_landed(one[0], alike.get(one, [])) if one else text for one, text in zip(absent, said, strict=True)
    ]  # fmt: skip


def _by_key(pipeline: Pipeline, delta: DeltaReader, events: Sequence[Mapping[str, Any]], wanted: set[str]) -> list[str]:
    """The same of joins by a key and time."""
    times: dict[str, set[datetime]] = defaultdict(set)
    where = [("match_key", "in", sorted(wanted))]
    for row in delta.read("primary", where, ["match_key", "event_time"]).to_pylist() if wanted else ():
        times[row["match_key"]].add(row["event_time"])
    return [_by_keys_times(pipeline, event, times.get(_id(event), set())) for event in events]


_PICKED = {"last": "the last of them is", "first": "the first of them is", "all": "all of them are"}


def _by_keys_times(pipeline: Pipeline, event: Mapping[str, Any], times: set[datetime]) -> str:
    match, around, own = pipeline.match, pipeline.around, event["event_time"]
    assert match
    assert around
    if not _id(event):
        return f"Its record has no key ({match.on.foreign}), so no primary event matches it"
    if not times:
        return f"No primary event with its key {_id(event)!r} has landed"
    low, high = own - timedelta(microseconds=around.back), own + timedelta(microseconds=around.ahead)
    near = min(times, key=lambda at: abs(at - own))
    if any(low <= at <= high for at in times):
        return (
            f"Primary events with its key {_id(event)!r} have landed: {_PICKED[match.pick]} joined once the "
            "primary stream has passed its time; after it was given up, redrive takes them up"
        )
    side, field = ("after", "skew") if near > high else ("before", "within")
    return (
        f"The nearest primary event with its key {_id(event)!r} lies {_text(abs(near - own))} {side} it "
        f"({near.isoformat()}), which is outside of foreign.match.{field}"
    )


def _id(event: Mapping[str, Any]) -> str:
    return event.get("primary_id") or ""


def _named(ids: set[str]) -> tuple[str, str, Any]:
    return ("event_id", "in", sorted(ids)) if len(ids) > 1 else ("event_id", "=", next(iter(ids)))


def _by_times(around: Around | None, event: Mapping[str, Any], times: Sequence[datetime]) -> str:
    """Where an event's primary event lies, by its times; empty where it has not landed, or no time is named."""
    wanted, own = _id(event), event["event_time"]
    if around is None:
        return _at_a_time(wanted, event.get("primary_time"), times)
    if not times:
        return ""
    low, high = own - timedelta(microseconds=around.back), own + timedelta(microseconds=around.ahead)
    if any(low <= at <= high for at in times):
        return f"Its primary event {wanted!r} has landed since: the next try joins it"
    near = min(times, key=lambda at: abs(at - own))
    if near > high:
        why = "which is more than foreign.primary_time.skew: raise that, or set the clock or zone that is ahead"
        if near - own > _CLOCKS:
            why = "so far that the `zone` of one stream is probably wrong, or was when it landed"
        return (
            f"Its primary event {wanted!r} has landed and lies {_text(near - own)} after it ({near.isoformat()}), {why}"
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


def _otherwise_spelt(
    delta: DeltaReader, absent: Sequence[tuple[str, datetime]]
) -> dict[tuple[str, datetime | None], list[str]]:  # fmt: skip
    """By id and time those ids that have landed within a day of it and are the same in another spelling."""
    found: dict[str, set[tuple[str, datetime]]] = defaultdict(set)
    names = [name for name, _ in absent]
    folded = dict(zip(names, _folded(pa.array(names, pa.string())).to_pylist(), strict=True))
    wanted = pa.array(sorted(set(folded.values())), pa.string())
    for low, high in _days([at for _, at in absent]):
        where = [("event_time", ">=", low), ("event_time", "<=", high)]
        for batch in delta.batches("primary", where, ["event_id", "event_time"]):
            same = _folded(batch["event_id"].cast(pa.string()))
            among = pc.is_in(same, wanted)
            rows, keys = batch.filter(among), same.filter(among).to_pylist()
            for name, at, key in zip(rows["event_id"].to_pylist(), rows["event_time"].to_pylist(), keys, strict=True):
                found[key].add((name, at))
    return {
        (name, near): sorted({other for other, at in found[folded[name]] if abs(at - near) <= _NEAR})
        for name, near in absent
    }


def _folded(ids: pa.Array) -> pa.Array:
    """Ids without what programs change in them: case, blanks, a UUID's dashes, zeros of a number, its last digits."""
    plain = pc.utf8_normalize(pc.utf8_lower(pc.utf8_trim_whitespace(ids)), "NFC")
    plain = pc.replace_substring_regex(plain, _MARKS, "")
    for pattern in (r"^0+([0-9])", r"^([0-9]+)\.0+$"):
        plain = pc.replace_substring_regex(plain, pattern, r"\1")
    rounds = pc.match_substring_regex(plain, _ROUNDED)
    as_floats = pc.if_else(rounds, plain, "0").cast(pa.float64()).cast(pa.string())
    return pc.if_else(rounds, as_floats, plain)


def _days(times: Sequence[datetime]) -> list[tuple[datetime, datetime]]:
    """A day before and after each time, those that overlap as one."""
    spans: list[tuple[datetime, datetime]] = []
    for at in sorted(times):
        if spans and at - _NEAR <= spans[-1][1]:
            spans[-1] = spans[-1][0], at + _NEAR
        else:
            spans.append((at - _NEAR, at + _NEAR))
    return spans


def _not_landed(wanted: str, alike: Sequence[str]) -> str:
    said = f"Its primary event {wanted!r} has not landed"
    if alike:
        others = ", ".join(map(repr, alike[:_ALIKE]))
        if re.fullmatch(_ROUNDED, wanted) and all(re.fullmatch(_ROUNDED, other) for other in alike):
            return f"{said}, but {others} has: a program that keeps ids as floats has rounded one; let it send text"
        return f"{said}, but {others} has: ids are compared as they stand, with case, blanks, dashes and zeros"
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
