"""Forgetting: the history of events that wait no longer leaves table `pending` after a while."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.model.extent import timestamp
from clickjoin.retry import pending

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engines.port import Lake


def settled_history(lake: Lake, before: datetime) -> DataFrame:
    """Events that were first tried before a moment and wait no longer: event_id, event_time, replica, round, rows."""
    rows = lake.read("pending")
    wanted = (F.max("round").alias("round"), F.max("first_seen").alias("first_seen"), F.count(F.lit(1)).alias("n"))
    return pending.states(rows, *wanted).where(f"state = 'resolved' AND first_seen < {timestamp(before)}")


def forget(lake: Lake, before: datetime, *, dry_run: bool) -> int:
    """Drop that history; returns the number of rows."""
    gone = settled_history(lake, before).localCheckpoint(eager=False)
    rows = int(gone.agg(F.sum("n").alias("n")).collect()[0]["n"] or 0)
    if rows and not dry_run:
        # An event that was redriven since waits in a higher round.
        lake.delete_matched("pending", gone, same=("replica",), up_to=("round",))
    return rows
