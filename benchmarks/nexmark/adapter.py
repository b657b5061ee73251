"""The part of q20 that is not the join: its filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from clickjoin.kernel.adapter import ArrowAdapter

CATEGORY = 10


class Category(ArrowAdapter):
    """Bids on auctions of one category, both records as JSON text; the others go to `filtered`."""

    columns: ClassVar[Mapping[str, str]] = {"bid": "STRING", "auction": "STRING"}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, bid, auction."""
        auction = joined["primary_id"].combine_chunks().dictionary_encode().indices.to_numpy()
        _, first, at = np.unique(auction, return_index=True, return_inverse=True)  # each is read once, not once a bid
        wanted = pc.equal(categories(joined["primary"].take(pa.array(first))), CATEGORY)
        rows = joined.select(["event_id", "event_time", "payload", "primary"]).filter(wanted.take(pa.array(at)))
        return rows.rename_columns(["event_id", "event_time", "bid", "auction"])


def categories(auctions: pa.ChunkedArray) -> pa.ChunkedArray:
    """The category of each auction, JSON text."""
    lines = pa.py_buffer("\n".join(auctions.to_pylist()).encode())
    fields = json.ParseOptions(pa.schema([("category", pa.int64())]), unexpected_field_behavior="ignore")
    return json.read_json(pa.BufferReader(lines), parse_options=fields)["category"]
