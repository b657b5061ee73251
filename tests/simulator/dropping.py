"""Adapters that leave some clicks out, so that schedules have filtered events too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.kernel.adapter import BothRecords

if TYPE_CHECKING:
    import pyarrow as pa


class Dropping(BothRecords):
    """Leaves out clicks whose id begins with `drop`."""

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, foreign, primary."""
        rows = super().merge_table(joined)
        return rows.filter([not name.startswith("drop") for name in rows["event_id"].to_pylist()])
