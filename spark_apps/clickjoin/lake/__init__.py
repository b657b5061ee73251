"""Delta tables: the only room that reads and writes them, by Spark or through their logs, and commits to them.

What knows a table's files, log or location enters here; what its rows mean does not.
"""

from clickjoin.lake.delta_tables import DeltaTables
from clickjoin.lake.spark_tables import SparkTables

__all__ = ["DeltaTables", "SparkTables"]
