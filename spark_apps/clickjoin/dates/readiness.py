"""Whether a date is complete, from logs and small tables alone: no Spark needed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from clickjoin.dates.date_watermark import low_watermark
from clickjoin.dispatcher.unread import primary_passed
from clickjoin.lake.clock import careful_now
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.model.errors import DateError
from clickjoin.model.ids import moment
from clickjoin.retry.pending import open_rows

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.model.span import Day


def readiness(pipeline: Pipeline, day: Day) -> dict[str, Any]:
    """Whether a date is complete: `ready`, `why`, and whether `late` (its limit, close.wait, is over). No Spark."""
    delta, now = DeltaReader(pipeline.root), careful_now(pipeline.root)
    mark = low_watermark(pipeline, delta, now.timestamp(), day)
    why = [] if mark.time and mark.time >= day.high else [f"not all of its input is read: {mark.why}"]
    if not why and pipeline.close.pending == "wait":
        waits = sum(day.low <= row["event_time"] < day.high for row in awaited(pipeline, delta))
        why += [f"{waits} of its events wait for their primary event"] if waits else []
    late = now >= day.high + timedelta(seconds=pipeline.close.wait)
    return {"date": str(day), "ready": not why, "why": "; ".join(why), "late": late}


def awaited(pipeline: Pipeline, delta: DeltaReader) -> list[dict[str, Any]]:
    """Events that wait for their primary, but those that the next try will give up as absent."""
    rows = open_rows(delta, "primary_time")
    if pipeline.retry.until == "attempts":
        return rows
    passed = {name: primary_passed(pipeline, delta, name) for name in {row["replica"] for row in rows}}
    return [row for row in rows if not _is_absent(row, passed[row["replica"]])]


def _is_absent(row: Mapping[str, Any], passed: int | None) -> bool:
    return passed is not None and (row["primary_time"] or row["event_time"]) < moment(passed)


def require_ready(pipeline: Pipeline, day: Day) -> None:
    """Check that a date is complete. Errors: DateError that says what is missing."""
    found = readiness(pipeline, day)
    if not found["ready"]:
        raise DateError(
            f"{day} is not complete: {found['why']}", remedy="Wait for it (--wait), or close it with --force"
        )
