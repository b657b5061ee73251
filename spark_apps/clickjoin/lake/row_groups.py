"""Short row groups where rows are looked up one by one: who reads few of a table's rows reads little beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = "parquet.block.row.count.limit"


@contextmanager
def short_groups(spark: SparkSession, table: str) -> Iterator[None]:
    """While the block runs, Spark writes row groups of 2,048 rows, if it is `primary` that is written.

    Of the other tables few columns of many rows are read, which short groups make slower.
    """
    if table != "primary":
        yield
        return
    spark.conf.set(_ROWS, "2048")
    try:
        yield
    finally:
        spark.conf.unset(_ROWS)
