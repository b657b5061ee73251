"""What per-key processing has reported, and of one key how it stands; no Spark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import moment
from clickjoin.processing.loading import require_process
from clickjoin.processing.tables import folder
from clickjoin.processors.port import NEVER
from clickjoin.report.listing import Listed
from clickjoin.schemas.process import KEYS

if TYPE_CHECKING:
    from clickjoin.config import Pipeline


def signals(pipeline: Pipeline, key: str | None, limit: int) -> Listed:
    """The newest signals, of one key or of all, and counts by kind. Errors: ConfigError, LakeError."""
    found = _tables(pipeline).read("signals", [("key", "=", key)] if key is not None else None).to_pylist()
    found.sort(key=lambda row: (row["reported_at"], row["window_start"], row["key"]), reverse=True)
    kinds = Counter(row["kind"] for row in found)
    groups = [{"kind": kind, "count": count} for kind, count in kinds.most_common()]
    return Listed(len(found), groups, found[:limit])


def key_state(pipeline: Pipeline, key: str) -> dict[str, Any]:
    """How one key stands: whether it has state, when it is looked at again without an event, its late events."""
    tables = _tables(pipeline)
    rows = tables.read("state", [("what", "=", KEYS), ("key", "=", key)], ["era", "batch", "timer", "gone"]).to_pylist()
    newest = max(rows, key=lambda row: row["batch"], default=None)
    has_state = newest is not None and not newest["gone"]
    timer = newest["timer"] if newest and has_state else NEVER
    return {
        "key": key,
        "has_state": has_state,
        "looked_at_again": None if timer == NEVER else moment(timer).isoformat(),
        "late_events": tables.read("late", [("key", "=", key)], ["batch"]).num_rows,
    }


def _tables(pipeline: Pipeline) -> ReadableTables:
    require_process(pipeline)
    tables = ReadableTables(folder(pipeline))
    if not tables.exists("signals"):
        raise LakeError(
            f"{folder(pipeline)}: nothing was processed yet", remedy="Run `clickjoin process`, or switch its DAG on"
        )
    return tables
