"""Late changes of closed dates, seen in the log alone: the output has another number of rows than then."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.dates import ledger
from clickjoin.kernel.data_skipping import rows_in
from clickjoin.model.span import Day

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader


def changed(pipeline: Pipeline, delta: DeltaReader, now: datetime) -> list[str]:
    """Dates within close.late_window whose newest row says closed, and whose output has changed since; oldest first."""
    oldest, actions = now - timedelta(seconds=pipeline.close.late_window), delta.files("joined")
    found = []
    for date, row in sorted(ledger.newest(delta).items()):
        day = Day(date)
        if row["state"] != "closed" or day.high < oldest:
            continue
        extent = day.span.extent(int(pipeline.registry.bucket))
        if rows_in(actions, extent) != int(row["fingerprint"].partition(":")[0]):
            found.append(str(day))
    return found
