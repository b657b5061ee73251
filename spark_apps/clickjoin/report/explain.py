"""Where one event is, and its whole way there: read from the tables without Spark."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.dispatcher.journal import JournalReader
from clickjoin.model.ids import MICROS, bucket_of, embedded_micros, moment, uuid7_micros
from clickjoin.model.places import JOINED, TOUCHES, output_of
from clickjoin.model.where import in_words
from clickjoin.report.candidates import candidates
from clickjoin.report.why_unjoined import clicks_of, why_unjoined

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader

_MAX_ROWS, _MAX_BYTES, _MAX_SHOWN_BYTES = 10, 256_000_000, 4_000
TABLES = ("foreign", "primary", "pending", "registry", "joined", "filtered", "unjoinable", "expired", "forgotten")
_LATEST = 253_370_764_800 * MICROS  # the year 9999, the last that a bucket can name
_ORDER = {"quarantine": len(TABLES)} | {name: rank for rank, name in enumerate(TABLES)}


def explain(pipeline: Pipeline, delta: DeltaReader, event_id: str) -> dict[str, Any]:
    """`state` of an event, its `history` (rows of every table that names it), and `remedy` if there is one.

    Of an event that is joined by a key and time also the `candidates` (report.candidates).
    """
    history = [step for name in TABLES for step in _steps(pipeline, delta, name, event_id)]
    numbers = ("round", "attempt", "batch", "offset")
    history.sort(key=lambda step: (_ORDER[step["table"]], *(step.get(number, 0) for number in numbers)))
    history = history or _quarantined(pipeline, delta, event_id)
    tables = {step["table"] for step in history}
    state = _state(tables, history)
    remedy = _gone(pipeline, delta, event_id, history, state) or _REMEDIES.get(state, "")
    if state == "unknown":
        remedy += _passed_over(pipeline)
    if state in _WAITS:
        why = why_unjoined(pipeline, delta, _times_of(history[-1]))
        remedy = f"{why}. {_WAITS[state]}" if why else _WAITS[state]
    if state == "primary":
        at = datetime.fromisoformat(history[-1]["event_time"])
        history += [_row(click.pop("table"), click) for click in clicks_of(pipeline, delta, event_id, at)]
    more = {"candidates": _candidates(pipeline, delta, history)} if pipeline.match and "foreign" in tables else {}
    for step in history:
        step["table"] = output_of(delta.root) if step["table"] == JOINED else step["table"]
    return {"event_id": event_id, "state": state, "remedy": remedy, "history": history} | more


def _candidates(pipeline: Pipeline, delta: DeltaReader, history: list[dict[str, Any]]) -> dict[str, Any]:
    own = next(step for step in history if step["table"] == "foreign")
    joined = next((step for step in history if step["table"] == JOINED), {})
    kept = {(one["event_id"], one["event_time"]) for one in joined.get(TOUCHES, ())}
    event = _times_of({**own, "primary_id": own.get("primary_id", "")})
    return candidates(pipeline, delta, event, joined.get("primary_id"), kept)


def _passed_over(pipeline: Pipeline) -> str:
    """That a record of no stream leaves nothing behind, where streams take some of their logs' records."""
    takes = [f"{item.section} takes {in_words(item.stream.where)}" for item in pipeline.inputs if item.stream.where]
    return f"; a record that no stream takes was passed over ({'; '.join(takes)})" if takes else ""


def _times_of(step: dict[str, Any]) -> dict[str, Any]:
    """A step with its times as such."""
    times = {name: datetime.fromisoformat(step[name]) for name in ("event_time", "primary_time") if step.get(name)}
    return step | times


_WAITS = {
    "pending": "It is tried again at due_at",
    "unjoinable": "Given up: once its primary event is there, send it again with `clickjoin redrive`",
}


_REMEDIES = {
    "forgotten": "Forgotten on request: its record is not stored, whenever it is read again; its claim and its ids are",
    "unknown": "No record with this id has landed, and none in table `quarantine` holds it: look for it in the logs",
    "quarantined": "A record that holds this id was not understood: fix what its reason and detail say",
    "claimed": "Claimed, and not published yet: the batch that its token names is under way, or must be run again",
    "landed": "Landed, and its batch is not settled yet: it is under way, or must be run again",
}


_OUTPUTS = ("joined", "filtered", "unjoinable")


def _gone(pipeline: Pipeline, delta: DeltaReader, event_id: str, history: list[dict[str, Any]], state: str) -> str:
    """What brings back the row of an event whose batch is settled; nothing unless it is in none of the tables."""
    if state not in ("claimed", "landed"):
        return ""
    own = next(step for step in history if step["table"] == ("registry" if state == "claimed" else "foreign"))
    landed = f"{pipeline.pipeline}/{own.get('replica')}/join/{own.get('batch', '')}"
    token = own.get("token", "") if state == "claimed" else landed
    known = re.fullmatch(rf"({re.escape(pipeline.pipeline)})/([^/]+)/([^/]+)/(\d+)", token)
    settled = known and JournalReader(delta, *known.groups()[:3]).settled() >= int(known[4])
    # Looked at once more: it may have been settled meanwhile.
    again = _OUTPUTS if state == "claimed" else (*_OUTPUTS, "pending", "registry", "expired")
    if not settled or any(_steps(pipeline, delta, table, event_id) for table in again):
        return ""
    day = datetime.fromisoformat(own["event_time"]).date()
    table = own.get("outcome", JOINED)
    gone = f"gone from `{output_of(delta.root) if table == JOINED else table}`" if state == "claimed" else "in no table"
    return f"Its row is {gone}: `clickjoin verify --repair --from {day} --to {day + timedelta(days=1)}`"


def _state(tables: set[str], history: list[dict[str, Any]]) -> str:
    if "forgotten" in tables:
        return "forgotten"
    for name in (*_OUTPUTS, "expired"):
        if name in tables:
            return name
    if "registry" in tables:
        return "claimed"
    if "quarantine" in tables:
        return "quarantined"
    waits = [step for step in history if step["table"] == "pending"]
    if waits:
        return "pending"
    if "primary" in tables:
        return "primary"
    return "landed" if "foreign" in tables else "unknown"


def _steps(pipeline: Pipeline, delta: DeltaReader, name: str, event_id: str) -> list[dict[str, Any]]:
    filters: list[Any] = [("event_id", "=", event_id)]
    side = pipeline.primary if name == "primary" and pipeline.primary else pipeline.claimed
    rule = {"embedded": embedded_micros, "uuid7": uuid7_micros}.get(str(side.event_time))
    micros = rule(event_id) if rule else None
    if micros is not None and micros < _LATEST:
        filters.append(("bucket", "=", bucket_of(micros, int(pipeline.registry.bucket))))
        if "event_date" in delta.table(name).partitions:
            filters.append(("event_date", "=", moment(micros).date()))
    rows = delta.read(name, filters=filters).to_pylist()
    return [_row(name, row) for row in rows]


def _quarantined(pipeline: Pipeline, delta: DeltaReader, event_id: str) -> list[dict[str, Any]]:
    """Rows of `quarantine` whose bytes hold the id: at most _MAX_ROWS, from the newest batches with _MAX_BYTES."""
    if not event_id:
        return []
    ways = _ways(pipeline, event_id)
    sizes = delta.read("quarantine", columns=["replica", "batch", "length"]).group_by(["replica", "batch"])
    found: list[dict[str, Any]] = []
    left = _MAX_BYTES
    for part in sizes.aggregate([("length", "sum")]).sort_by([("batch", "descending")]).to_pylist():
        left -= part["length_sum"] or 0
        if (left < 0 and found) or len(found) >= _MAX_ROWS:
            break
        rows = delta.read("quarantine", [(name, "=", part[name]) for name in ("replica", "batch")])
        rows = rows.filter(_holds(rows["raw"], ways)).slice(0, _MAX_ROWS - len(found))
        found += [_row("quarantine", row) for row in rows.to_pylist()]
        if left < 0:
            break
    return found


def _ways(pipeline: Pipeline, event_id: str) -> list[list[str]]:
    """What a record must hold: the id as one value, or, where ids are made of several columns, each of its values."""
    parts = [part.replace("%3A", ":").replace("%25", "%") for part in event_id.split(":")]
    counts = {len(item.stream.event_id) for item in pipeline.inputs}
    return [[event_id], *([parts] if len(parts) > 1 and len(parts) in counts else [])]


def _holds(raw: pa.ChunkedArray, ways: list[list[str]]) -> pa.ChunkedArray:
    """Which bytes hold, of one of some lists of values, each as a whole, not within a longer one."""
    found = pa.repeat(False, len(raw))
    for values in ways:
        each = [pc.match_substring_regex(raw, rf"(?:^|[^\w.:-]){re.escape(value)}(?:$|[^\w.:-])") for value in values]
        found = pc.or_(found, pc.fill_null(reduce(pc.and_, each), False))
    return found


def _row(name: str, row: dict[str, Any]) -> dict[str, Any]:
    return {"table": name, **{key: _plain(value) for key, value in row.items() if value is not None}}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        more = f" … ({len(value):,} bytes)" if len(value) > _MAX_SHOWN_BYTES else ""
        return value[:_MAX_SHOWN_BYTES].decode("utf-8", "backslashreplace").rstrip("\r\n") + more
    if isinstance(value, list):  # touches
        return [{name: _plain(each) for name, each in one.items()} for one in value]
    return value.isoformat() if isinstance(value, date) else value  # a datetime is one as well
