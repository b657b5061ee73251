"""Spark's executors, as far as they are not this machine: whether there are any, and what they see of its disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clickjoin.kernel.handshake import Mark, checked, looker
from clickjoin.spark.session import is_alone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS = 8


def cluster_of(spark: SparkSession) -> str:
    """The master of a session whose executors are processes of their own, as spark://host:7077; else empty."""
    master = spark.conf.get("spark.master", "local") or "local"
    return "" if is_alone(master) else master


def unseen(spark: SparkSession, marks: Sequence[Mark]) -> set[str]:
    """Of which things executors do not see every mark. Some of the executors are asked: they are taken to be alike."""
    rows = spark.range(0, _TASKS, 1, _TASKS).mapInArrow(checked(looker(marks)), "what STRING").distinct()
    return {row["what"] for row in rows.collect()}
