"""An adapter that an upstream's date is recomputed with."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as F

from clickjoin.kernel.adapter import Adapter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Marked(Adapter):
    """Both records, and a mark."""

    columns: ClassVar = {"foreign_record": "STRING", "primary_record": "STRING", "mark": "STRING"}

    def merge(self, joined: DataFrame) -> DataFrame:
        """The mark says that it was at work."""
        return joined.select(
            "event_id",
            "event_time",
            F.col("payload").alias("foreign_record"),
            F.col("primary").alias("primary_record"),
            F.lit("x").alias("mark"),
        )
