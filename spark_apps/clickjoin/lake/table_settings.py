"""Delta's settings of the product's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.lake.as_made import STATISTICS

if TYPE_CHECKING:
    from clickjoin.schemas import Table

# A batch every few seconds makes tens of thousands of versions a day: a short log. Each look and commit of delta-rs
# costs by the entries since the last checkpoint: at 50 a small batch takes a seventh more.
_SETTINGS = {
    "delta.checkpointInterval": "25",
    "delta.logRetentionDuration": "interval 3 days",
    # Whoever writes a checkpoint would clean up by its own clock, however wrong; GC does it by the lake's.
    "delta.enableExpiredLogCleanup": "false",
    # Not longer than the log: time travel needs both.
    "delta.deletedFileRetentionDuration": "interval 3 days",
    "delta.enableChangeDataFeed": "false",
    "delta.enableDeletionVectors": "false",
}


def settings(table: Table) -> dict[str, str]:
    """Delta's settings of a table."""
    found = dict(_SETTINGS)
    if table.statistics:
        found[STATISTICS] = ",".join(table.statistics)
    return found | table.settings
