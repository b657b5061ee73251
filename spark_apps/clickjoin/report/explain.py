"""Where one event is, and its whole way there: read from the tables without Spark."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from clickjoin.events import MICROS, bucket_of, embedded_micros, uuid7_micros

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake import SmallTables

_TABLES = ("foreign", "primary", "pending", "registry", "joined", "filtered", "unjoinable", "expired")
_LATEST = 253_370_764_800 * MICROS  # the year 9999, the last that a bucket can name
_ORDER = {name: rank for rank, name in enumerate(_TABLES)}


def explain(pipeline: Pipeline, small: SmallTables, event_id: str) -> dict[str, Any]:
    """`state` of an event, its `history` (rows of every table that names it), and `remedy` if there is one."""
    history = [step for name in _TABLES for step in _steps(pipeline, small, name, event_id)]
    numbers = ("round", "attempt", "batch", "offset")
    history.sort(key=lambda step: (_ORDER[step["table"]], *(step.get(number, 0) for number in numbers)))
    tables = {step["table"] for step in history}
    state = _state(tables, history)
    return {"event_id": event_id, "state": state, "remedy": _REMEDIES.get(state, ""), "history": history}


_REMEDIES = {
    "unknown": "No good record with this id has landed: look for it in table `quarantine`, and in the logs themselves",
    "pending": "Its primary event has not landed: it is tried again at due_at; look whether its log is late",
    "unjoinable": "Given up; when its primary event is there, send it round again with `clickjoin redrive`",
    "claimed": "Claimed, and not published yet: the batch that its token names is under way, or must be run again",
    "landed": "Landed, and its batch is not settled yet: it is under way, or must be run again",
}


def _state(tables: set[str], history: list[dict[str, Any]]) -> str:
    for name in ("joined", "filtered", "unjoinable", "expired"):
        if name in tables:
            return name
    if "registry" in tables:
        return "claimed"
    waits = [step for step in history if step["table"] == "pending"]
    if waits:
        return "pending"
    if "primary" in tables:
        return "primary"
    return "landed" if "foreign" in tables else "unknown"


def _steps(pipeline: Pipeline, small: SmallTables, name: str, event_id: str) -> list[dict[str, Any]]:
    filters: list[Any] = [("event_id", "=", event_id)]
    side = pipeline.primary if name == "primary" else pipeline.foreign
    micros = {"embedded": embedded_micros, "uuid7": uuid7_micros}.get(side.event_time, lambda _: None)(event_id)
    if micros is not None and micros < _LATEST:
        filters.append(("bucket", "=", bucket_of(micros, int(pipeline.registry.bucket))))
    rows = small.read(name, filters=filters).to_pylist()
    return [{"table": name, **{key: _plain(value) for key, value in row.items() if value is not None}} for row in rows]


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
