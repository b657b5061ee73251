"""An adapter that an upstream's date is recomputed with."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from clickjoin.kernel.adapter import BothRecords


class Marked(BothRecords):
    """Both records, and a mark."""

    columns: ClassVar = {**BothRecords.columns, "mark": "STRING"}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """The mark says that it was at work."""
        rows = super().merge_table(joined)
        return rows.append_column("mark", pa.array(["x"] * rows.num_rows, pa.string()))
