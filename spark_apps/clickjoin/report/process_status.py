"""How per-key processing stands, and what it has reported today: no Spark, and no state of a key is read."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clickjoin.chain.rests_on import rests_on
from clickjoin.dispatcher.journal import JournalReader
from clickjoin.model.errors import LakeError
from clickjoin.processing.loading import require_process
from clickjoin.processing.planning import REPLICA, SEQUENCE
from clickjoin.report.signals import standing, tables_of

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_LAST = ("settled_at", "watermark", "backlog_events", "keys_in_state")


def process_status(pipeline: Pipeline) -> dict[str, Any]:
    """Its key and processor, the last batch, how far the output is complete (`output_watermark`), and on what that
    rests: `stream`, `place`, `since`, and `why` in a sentence.
    """
    process, held = require_process(pipeline), rests_on(pipeline)
    found = {"processor": process.processor, "key": ", ".join(process.key), **_last(pipeline)}
    rests = {"stream": held.stream or None, "place": held.place or None, "since": held.since, "why": held.why}
    return found | {"output_watermark": held.time} | rests


def _last(pipeline: Pipeline) -> dict[str, Any]:
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
    rows = tables.read("signals", [("reported_at", ">=", midnight)]).to_pylist()
    rows.sort(key=lambda row: (row["reported_at"], row["window_start"], row["key"]), reverse=True)
    kinds = dict(Counter(row["kind"] for row in standing(rows)).most_common())
    every = [] if rows else tables.read("signals", columns=["reported_at"])["reported_at"].to_pylist()
    return {"count": len(rows), "kinds": kinds, "rows": rows[:limit], "newest": max(every, default=None)}
