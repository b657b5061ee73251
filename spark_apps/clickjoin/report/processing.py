"""What per-key processing has reported, how it stands, and one key of it with counts and what was expected."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from clickjoin.chain.rests_on import rests_on
from clickjoin.dispatcher.journal import JournalReader
from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.ids import MICROS, micros_of, moment
from clickjoin.processing.key_counts import key_counts
from clickjoin.processing.key_state import KeyState, key_state_of
from clickjoin.processing.loading import load_processor, require_process
from clickjoin.processing.planning import REPLICA, SEQUENCE, STREAM
from clickjoin.processing.tables import folder
from clickjoin.report.listing import Listed

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.processors.port import Band, Processor


def signals(pipeline: Pipeline, key: str | None, limit: int) -> Listed:
    """The newest signals, retractions among them, of one key or of all, and counts by kind of those that stand.

    Errors: ConfigError, LakeError.
    """
    found, kinds = _newest_first(tables_of(pipeline), [("key", "=", key)] if key is not None else None)
    groups = [{"kind": kind, "count": count} for kind, count in kinds.items()]
    return Listed(len(found), groups, found[:limit])


def _newest_first(tables: ReadableTables, filters: list[Any] | None) -> tuple[list[Row], dict[str, int]]:
    """Some signals, and counts by kind, the most frequent first, of those that stand."""
    found = tables.read("signals", filters).to_pylist()
    found.sort(key=lambda row: (row["reported_at"], row["window_start"], row["key"]), reverse=True)
    return found, dict(Counter(row["kind"] for row in standing(found)).most_common())


def standing(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Signals that no late event has taken back, in their order."""

    def name(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["key"], row["kind"], row["window_start"], row["revision"]

    taken_back = {name(row) for row in rows if row["retracted"]}
    return [row for row in rows if name(row) not in taken_back]


def key_state(pipeline: Pipeline, key: str) -> dict[str, Any]:
    """How one key stands: whether it has state, when it is looked at again without an event, its late events."""
    tables_of(pipeline)
    state = key_state_of(pipeline, key, None)
    return {
        "key": key,
        "has_state": state.has_state,
        "looked_at_again": moment(state.timer).isoformat() if state.timer else None,
        "late_events": len(state.late),
    }


def tables_of(pipeline: Pipeline) -> ReadableTables:
    """The tables of its processing. Errors: ConfigError, LakeError where there are none yet."""
    require_process(pipeline)
    tables = ReadableTables(folder(pipeline))
    if not tables.exists("signals"):
        raise LakeError(
            f"{folder(pipeline)}: nothing was processed yet", remedy="Run `clickjoin process`, or switch its DAG on"
        )
    return tables


_LAST = ("settled_at", "watermark", "backlog_events", "keys_in_state")


def process_status(pipeline: Pipeline) -> dict[str, Any]:
    """Its key and processor, the last batch, how far the output is complete (`output_watermark`), and on what that
    rests: `stream`, `place`, `since`, and `why` in a sentence.
    """
    process, held = require_process(pipeline), rests_on(pipeline)
    found = {"processor": process.processor, "key": ", ".join(process.key), **_last_batch(pipeline)}
    rests = {"stream": held.stream or None, "place": held.place or None, "since": held.since, "why": held.why}
    return found | {"output_watermark": held.time} | rests


def _last_batch(pipeline: Pipeline) -> dict[str, Any]:
    """What the newest batch that is done has said; nothing known where there is none."""
    try:
        tables = tables_of(pipeline)
    except LakeError:
        return {"batch": 0} | dict.fromkeys(_LAST)
    number = JournalReader(tables, pipeline.pipeline, REPLICA, SEQUENCE).settled()
    rows = tables.read("processed", [("batch", "=", number)], list(_LAST)).to_pylist()
    return {"batch": number} | (rows[0] if rows else dict.fromkeys(_LAST))


def signals_today(pipeline: Pipeline, now: datetime, limit: int) -> dict[str, Any]:
    """Signals that were reported on the date of `now` (UTC), newest first: `rows` (at most `limit`), `count` of them
    all, and `kinds`. `newest`: when the newest of all was reported, if none was on this date.
    """
    try:
        tables = tables_of(pipeline)
    except LakeError:
        return {"count": 0, "kinds": {}, "rows": [], "newest": None}
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    rows, kinds = _newest_first(tables, [("reported_at", ">=", midnight)])
    every = [] if rows else tables.read("signals", columns=["reported_at"])["reported_at"].to_pylist()
    return {"count": len(rows), "kinds": kinds, "rows": rows[:limit], "newest": max(every, default=None)}


_SHIPPED = "clickjoin.processors:"
_MINUTE = 60 * MICROS
_AROUND = 60  # windows before and after the newest signal
_MOST_SPANS = 1_500  # of a chart
RANGES = {"": None, "1h": 1, "6h": 6, "1d": 24, "7d": 168}  # hours; none: around the newest signal, or a day
Row = dict[str, Any]


def explain_key(pipeline: Pipeline, key: str, limit: int = 20, *, own: bool = True) -> Row:
    """How a key stands: its state, open windows, what is expected now, signals (newest first) and late events.

    `own`: a processor of the pipeline's owner is loaded too, not those alone that are shipped.
    """
    processor, found = _processor(pipeline, own), signals(pipeline, key, limit)
    state = key_state_of(pipeline, key, processor)
    return {
        "key": key,
        "processor": require_process(pipeline).processor,
        **_stands(state),
        "signals_reported": found.count,
        "signals": found.rows,
        "late": state.late[:limit],
    }


def _stands(state: KeyState) -> Row:
    outlook = state.outlook
    notes = outlook.notes if outlook else {}
    return {
        "has_state": state.has_state,
        "watermark": state.watermark and moment(state.watermark),
        "looked_at_again": moment(state.timer) if state.timer else None,
        **{name: moment(at) for name, at in notes.items()},
        "expected": _band(outlook.band) if outlook and outlook.band else None,
        "open": [
            {"window_start": moment(begin), "window_end": moment(end), "count": count}
            for begin, end, count in (outlook.open if outlook else ())
        ],
        "late_events": len(state.late),
    }


def _band(band: Band) -> Row:
    return {"from": moment(band.start), "to": moment(band.end)} | {
        name: round(getattr(band, name), 3) for name in ("expected", "low", "high")
    }


def key_chart(pipeline: Pipeline, key: str, now: datetime, chosen: str = "") -> Row:
    """Counts of a key by window, what was expected where that is known, and its signals. `chosen`: one of RANGES.

    `seconds`: of a span that `counts` are of: a window, or several where there would be too many. `bands`: per window;
    those of a signal of several windows are its mean. None where spans are wider than a window. `late`: events of the
    span that the processor was not given.
    """
    if chosen not in RANGES:
        raise ConfigError(f"no such range: {chosen}", remedy=f"Ask for one of {', '.join(filter(None, RANGES))}")
    processor = _processor(pipeline, own=False)
    width = int(getattr(processor, "window", _MINUTE))
    reported = signals(pipeline, key, _MOST_SPANS)
    stand = standing(reported.rows)
    since, until = _range(pipeline, RANGES[chosen], width, stand, now)
    span = width * -(-(until - since) // (width * _MOST_SPANS))
    since = since // span * span
    found = key_counts(pipeline, key, moment(since), moment(until), span)
    state = key_state_of(pipeline, key, processor)
    shown = [row for row in stand if _meets(row, since, until)]
    return {
        "key": key, "since": moment(since), "until": moment(until), "seconds": span // MICROS,
        "window_seconds": width // MICROS, "watermark": state.watermark and moment(state.watermark),
        "counts": [[at // MICROS, count] for at, count in found.counts.items()], "rows_read": found.rows,
        "bands": _bands(shown, state, width, since, until) if span == width else [],
        "signals": shown, "signals_reported": reported.count,
        "late": sum(
            since <= micros_of(row["event_time"]) < until for row in state.late if row["reason"] != "corrected"
        ),
    }  # fmt: skip


def _processor(pipeline: Pipeline, own: bool) -> Processor | None:
    """The processor; None of an owner's where only those that are shipped are wanted."""
    process = require_process(pipeline)
    return load_processor(process) if own or process.processor.startswith(_SHIPPED) else None


def _range(pipeline: Pipeline, hours: int | None, width: int, rows: list[Row], now: datetime) -> tuple[int, int]:
    """From when to when, in microseconds: whole windows."""
    if hours is None and rows:
        near = max(rows, key=lambda row: row["window_start"])
        begin, end = micros_of(near["window_start"]) - _AROUND * width, micros_of(near["window_end"]) + _AROUND * width
    else:
        end = _newest(pipeline) or micros_of(now)
        begin = end - int(timedelta(hours=hours or 24) / timedelta(microseconds=1))
    return begin // width * width, end // width * width + width


def _newest(pipeline: Pipeline) -> int:
    """How far the processing has come: its watermark, or its newest event; 0 where neither is known."""
    state = JournalReader(tables_of(pipeline), pipeline.pipeline, REPLICA, SEQUENCE).load()
    return max(state.watermarks.get(STREAM, 0), state.newest.get(STREAM, 0))


def _meets(row: Row, since: int, until: int) -> bool:
    return micros_of(row["window_start"]) < until and micros_of(row["window_end"]) > since


def _bands(rows: list[Row], state: KeyState, width: int, since: int, until: int) -> list[Row]:
    """What signals have said, and the processor's own account of the hour which is not over."""
    found = [_of_signal(row, width) for row in rows if row["expected"] is not None]
    band = state.outlook.band if state.outlook else None
    if band and band.start < until and band.end > since:
        found.append(_band(band) | {"of": "now", "windows": 1})
    return sorted(found, key=lambda one: one["from"])


def _of_signal(row: Row, width: int) -> Row:
    windows = max((micros_of(row["window_end"]) - micros_of(row["window_start"])) // width, 1)
    each = {name: None if row[name] is None else row[name] / windows for name in ("expected", "low", "high")}
    return {"from": row["window_start"], "to": row["window_end"], "of": row["kind"], "windows": windows} | each
