"""The part of q20 that is not the join: its filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.adapter import ArrowAdapter

if TYPE_CHECKING:
    from pyarrow import Table

CATEGORY = 10


class Category(ArrowAdapter):
    """Bids on auctions of one category, both records as JSON text; the others go to `filtered`."""

    columns: ClassVar[Mapping[str, str]] = {"bid": "STRING", "auction": "STRING"}

    def merge_table(self, joined: Table) -> Table:
        """Columns out: event_id, event_time, bid, auction."""
        from pyarrow import json

        lines = pa.py_buffer("\n".join(joined["primary"].to_pylist()).encode())
        fields = json.ParseOptions(pa.schema([("category", pa.int64())]), unexpected_field_behavior="ignore")
        wanted = pc.equal(json.read_json(pa.BufferReader(lines), parse_options=fields)["category"], CATEGORY)
        rows = joined.select(["event_id", "event_time", "payload", "primary"]).filter(wanted.combine_chunks())
        return rows.rename_columns(["event_id", "event_time", "bid", "auction"])
