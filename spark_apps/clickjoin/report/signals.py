"""What per-key processing has reported, and of one key how it stands; no Spark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import moment
from clickjoin.processing.loading import load_processor, require_process
from clickjoin.processing.state_rows import load
from clickjoin.processing.tables import ProcessTables, folder
from clickjoin.processors.port import NEVER
from clickjoin.report.listing import Listed

if TYPE_CHECKING:
    from clickjoin.config import Pipeline


def signals(pipeline: Pipeline, key: str | None, limit: int) -> Listed:
    """The newest signals, of one key or of all, and counts by kind. Errors: ConfigError, LakeError."""
    tables = _tables(pipeline)
    found = tables.read("signals", [("key", "=", key)] if key is not None else None).to_pylist()
    found.sort(key=lambda row: (row["reported_at"], row["window_start"], row["key"]), reverse=True)
    kinds = Counter(row["kind"] for row in found)
    groups = [{"kind": kind, "count": count} for kind, count in kinds.most_common()]
    return Listed(len(found), groups, found[:limit])


def key_state(pipeline: Pipeline, key: str) -> dict[str, Any]:
    """How one key stands: whether it has state, when it is looked at again without an event, its late events."""
    tables = _tables(pipeline)
    held = load(tables).held
    timer = held.timer(key)
    late = tables.read("late", [("key", "=", key)], ["event_id", "event_time"])
    return {
        "key": key,
        "has_state": key in held,
        "looked_at_again": None if timer == NEVER else moment(timer).isoformat(),
        "late_events": late.num_rows,
    }


def _tables(pipeline: Pipeline) -> ProcessTables:
    tables = ProcessTables(folder(pipeline), load_processor(require_process(pipeline)).state)
    if not ReadableTables(folder(pipeline)).exists("signals"):
        raise LakeError(
            f"{folder(pipeline)}: nothing was processed yet", remedy="Run `clickjoin process`, or switch its DAG on"
        )
    return tables
