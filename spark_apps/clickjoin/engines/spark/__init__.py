"""`engine: spark`: every batch is Spark jobs, and every commit is Delta's own writer's; claims are one MERGE."""

from clickjoin.engines.spark.lake import SparkLake
from clickjoin.engines.spark.tables import SparkTables

__all__ = ["SparkLake", "SparkTables"]
