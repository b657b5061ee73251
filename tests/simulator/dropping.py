"""Adapters that leave some clicks out, so that schedules have filtered events too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.kernel.adapter import BothRecords

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class Dropping(BothRecords):
    """Leaves out clicks whose id begins with `drop`."""

    def prepare(self, foreign: DataFrame) -> DataFrame:
        """Columns out: those that came in."""
        return foreign.where(F.substring("event_id", 1, 4) != "drop")


class DroppingTables(BothRecords):
    """The same, without Spark."""

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, foreign, primary."""
        rows = super().merge_table(joined)
        return rows.filter([not name.startswith("drop") for name in rows["event_id"].to_pylist()])
