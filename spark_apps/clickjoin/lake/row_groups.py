"""Short row groups in files that Spark writes of tables whose rows are looked up one by one.

Who reads few of their rows reads little beside them: look-ups choose row groups by the footer's statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clickjoin.kernel.data_file import ROWS_A_GROUP

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOKED_UP = ("primary", "foreign", "pending", "registry")
_ROWS = "parquet.block.row.count.limit"


@contextmanager
def for_look_ups(spark: SparkSession, table: str) -> Iterator[None]:
    """While the block runs, Spark writes row groups as short as tasks do, if it is such a table that is written."""
    if table not in _LOOKED_UP:
        yield
        return
    before = spark.conf.get(_ROWS, None)
    spark.conf.set(_ROWS, str(ROWS_A_GROUP))
    try:
        yield
    finally:
        spark.conf.unset(_ROWS) if before is None else spark.conf.set(_ROWS, before)
