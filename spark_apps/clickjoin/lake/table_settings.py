"""Delta's settings of the product's tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from clickjoin.schemas import Table

STATISTICS = "delta.dataSkippingStatsColumns"
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


def as_made(table: Table, made: DeltaTable) -> Table:
    """A table with the partitions and statistics that a lake has: a pipeline's file chooses those of the output."""
    metadata = made.metadata()
    listed = (metadata.configuration or {}).get(STATISTICS)
    return replace(
        table,
        partitions=tuple(metadata.partition_columns),
        statistics=tuple(listed.split(",")) if listed else table.statistics,
    )
