"""Adapters that a date's output is recomputed with."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as F

from clickjoin.kernel.adapter import Adapter

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
