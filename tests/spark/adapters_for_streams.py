"""An adapter of a pipeline of one stream that only whole DataFrames can be given to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from clickjoin.joiner.adapter import Adapter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BySpark(Adapter):
    """The whole record, as it is."""

    columns: ClassVar[Mapping[str, str]] = {"record": "STRING"}

    def merge(self, joined: DataFrame) -> DataFrame:
        """Columns out: event_id, event_time, record."""
        return joined.select("event_id", "event_time", joined["payload"].alias("record"))
