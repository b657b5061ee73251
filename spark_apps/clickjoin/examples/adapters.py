"""Two adapters to start from: typed columns with a computed one, and a filter with an enrichment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as F

from clickjoin.joiner.adapter import Adapter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TypedClick(Adapter):
    """Fields of both ZOZO records as typed columns, and how long after the impression the click came (seconds)."""

    columns: ClassVar[Mapping[str, str]] = {
        "item_id": "BIGINT",
        "position": "INT",
        "campaign": "STRING",
        "propensity": "DOUBLE",
        "delay_seconds": "DOUBLE",
    }

    def merge(self, joined: DataFrame) -> DataFrame:
        """Columns out: event_id, event_time, item_id, position, campaign, propensity, delay_seconds."""
        click = F.from_json("payload", "item_id BIGINT, position INT")
        shown = F.from_json("primary", "campaign STRING, propensity_score DOUBLE")
        micros = F.unix_micros("event_time") - F.unix_micros("primary_time")
        return joined.select(
            "event_id",
            "event_time",
            click["item_id"].alias("item_id"),
            click["position"].alias("position"),
            shown["campaign"].alias("campaign"),
            shown["propensity_score"].alias("propensity"),
            (micros / 1e6).alias("delay_seconds"),
        )


class TopPositions(Adapter):
    """Clicks on the first two positions only, each with the price of its position; the rest go to `filtered`."""

    columns: ClassVar[Mapping[str, str]] = {
        "foreign_record": "STRING",
        "primary_record": "STRING",
        "price": "DOUBLE",
    }

    def prepare(self, foreign: DataFrame) -> DataFrame:
        """Columns out: those that came in, and position."""
        position = F.get_json_object("payload", "$.position").cast("int")
        return foreign.withColumn("position", position).where(F.col("position") <= 2)

    def merge(self, joined: DataFrame) -> DataFrame:
        """Columns out: event_id, event_time, foreign_record, primary_record, price."""
        price = F.when(F.col("position") == 1, 0.25).otherwise(0.1)
        clicked, shown = F.col("payload").alias("foreign_record"), F.col("primary").alias("primary_record")
        return joined.select("event_id", "event_time", clicked, shown, price.alias("price"))
