"""The part of q20 that is not the join: its filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as F

from clickjoin.joiner.adapter import Adapter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CATEGORY = 10


class Category(Adapter):
    """Bids on auctions of one category, both records as JSON text; the others go to `filtered`."""

    columns: ClassVar[Mapping[str, str]] = {"bid": "STRING", "auction": "STRING"}

    def merge(self, joined: DataFrame) -> DataFrame:
        """Columns out: event_id, event_time, bid, auction."""
        wanted = F.get_json_object("primary", "$.category").cast("int") == CATEGORY
        return joined.where(wanted).select(
            "event_id", "event_time", F.col("payload").alias("bid"), F.col("primary").alias("auction")
        )
