"""A proposed pipeline of one stream: which column is the id, whether it holds its time, and how repeats look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from clickjoin.proposal.columns import is_named_id, time_in_ids
from clickjoin.proposal.guess import GUESS, LIKELY, SURE, Choice, Ids, id_columns, own_id, time_of
from clickjoin.proposal.logs import Log

_MOSTLY = 0.3  # of the records of a stream with repeats, so many have an id of their own


def guess_one(log: Log) -> dict[str, Choice]:
    """Propose `event_id`, `event_time` and, where an id comes with several times, `identity`."""
    ids = id_columns(log)
    event_id = _event_id(ids)
    event_time, micros = time_of(log, ids, event_id.value)
    if isinstance(event_time.value, str) and event_time.value in ("embedded", "uuid7"):
        return {"event_id": event_id, "event_time": event_time}
    if event_time.value == "FILL_IN":
        return {"event_id": event_id, **_landed(f"{event_time.why}, so a repeat is known by its id alone")}
    if moved := _moved(ids, event_id.value, micros):
        return {"event_id": event_id, **_landed(f"{moved:,} sampled ids come with more than one time")}
    return {"event_id": event_id, "event_time": event_time}


def _event_id(ids: Ids) -> Choice:
    """The column named like an id that differs the most: repeats are what the pipeline is for."""
    shares = {name: len(set(values)) / len(values) for name, values in ids.items() if None not in values}
    named = [name for name in shares if is_named_id(name) and shares[name] >= _MOSTLY]
    if not named:
        return own_id(ids)
    best = max(named, key=lambda name: (time_in_ids(ids[name]) is not None, shares[name]))
    values = ids[best]
    others = [name for name in named if name != best]
    why = f"{len(set(values)):,} different ones in {len(values):,} sampled records"
    doubt = f"; it could also be {', '.join(others)}" if others else ""
    return Choice((best,), LIKELY if others else SURE, why + doubt)


def _moved(ids: Ids, key: Sequence[str], micros: Sequence[int | None]) -> int:
    """How many ids come with more than one time."""
    if "FILL_IN" in key:
        return 0
    times: dict[Any, set[int | None]] = defaultdict(set)
    for *parts, at in zip(*(ids[name] for name in key), micros, strict=True):
        times[tuple(parts)].add(at)
    return sum(len(found) > 1 for found in times.values())


def _landed(why: str) -> dict[str, Choice]:
    return {"event_time": Choice("landed", GUESS, why), "identity": Choice("id", GUESS, why)}
