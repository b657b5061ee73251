"""What per-key processing has reported, and of one key how it stands; no Spark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import moment
from clickjoin.processing.key_state import key_state_of
from clickjoin.processing.loading import require_process
from clickjoin.processing.tables import folder
from clickjoin.report.listing import Listed

if TYPE_CHECKING:
    from clickjoin.config import Pipeline


def signals(pipeline: Pipeline, key: str | None, limit: int) -> Listed:
    """The newest signals, retractions among them, of one key or of all, and counts by kind of those that stand.

    Errors: ConfigError, LakeError.
    """
    found = tables_of(pipeline).read("signals", [("key", "=", key)] if key is not None else None).to_pylist()
    found.sort(key=lambda row: (row["reported_at"], row["window_start"], row["key"]), reverse=True)
    kinds = Counter(row["kind"] for row in standing(found))
    groups = [{"kind": kind, "count": count} for kind, count in kinds.most_common()]
    return Listed(len(found), groups, found[:limit])


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
