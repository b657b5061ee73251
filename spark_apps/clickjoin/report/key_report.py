"""One key of per-key processing: how it stands, and its counts over time with what was expected; no Spark."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.journal import JournalReader
from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import MICROS, micros_of, moment
from clickjoin.processing.key_counts import key_counts
from clickjoin.processing.key_state import KeyState, key_state_of
from clickjoin.processing.loading import load_processor, require_process
from clickjoin.processing.planning import REPLICA, SEQUENCE, STREAM
from clickjoin.report.signals import signals, standing, tables_of

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.processors.port import Band, Processor

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
