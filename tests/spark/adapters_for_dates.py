"""Adapters that a date's output is recomputed with."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from clickjoin.kernel.adapter import Adapter, ArrowAdapter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Louder(Adapter):
    """One column of its own, and none of the default's."""

    columns: ClassVar = {"louder": "STRING"}

    def merge(self, joined: DataFrame) -> DataFrame:
        """The host, in capitals."""
        host = F.upper(F.substring_index("event_id", ":", 2))
        return joined.select("event_id", "event_time", host.alias("louder"))


class Nobody(Louder):
    """Leaves everything out."""

    def prepare(self, foreign: DataFrame) -> DataFrame:
        """Nothing."""
        return foreign.where("FALSE")


class Falls(Louder):
    """Fails on a row."""

    def merge(self, joined: DataFrame) -> DataFrame:
        """A cast that cannot be."""
        return joined.select("event_id", "event_time", F.expr("raise_error('half-way')").alias("louder"))


class Shown(ArrowAdapter):
    """One column of its own, by Arrow, and none of the default's."""

    columns: ClassVar = {"shown": "STRING"}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Both records and when the primary event was, in no order."""
        times = joined["primary_time"].cast(pa.int64()).cast(pa.string())
        shown = pc.binary_join_element_wise(
            joined["payload"].fill_null(""), joined["primary"].fill_null(""), times.fill_null(""), "|"
        )
        rows = joined.select(["event_id", "event_time"]).append_column("shown", shown)
        return rows.take(pa.array(range(rows.num_rows - 1, -1, -1), pa.int64()))


class Few(Shown):
    """Leaves out what has a word in its record."""

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: those of Shown."""
        return super().merge_table(joined.filter(pc.invert(pc.match_substring(joined["payload"], "left out"))))
