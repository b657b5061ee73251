"""The layout of Parquet files whose rows are looked up one by one: who reads few of them reads little beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Short pages, which kernel/parquet_pages reads one by one, in long row groups, so that footers are short.
_PAGES = {
    "parquet.page.row.count.limit": "512",
    "parquet.page.size": str(64 << 10),
    "parquet.block.row.count.limit": "65536",
    "parquet.block.size": str(16 << 20),
}
_ORDER = "event_time"


@contextmanager
def for_look_ups(spark: SparkSession, table: str, order: str = "") -> Iterator[None]:
    """While the block runs, Spark writes files for look-ups, if it is such a table that is written.

    `order`: the column that rows of the registry are sorted by; in one that is sorted by id, ids are looked up by the
    row groups' least and greatest, and those stay short.
    """
    wanted = _PAGES if table == "primary" or (table == "registry" and order == _ORDER) else {}
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, held in before.items():
            spark.conf.unset(name) if held is None else spark.conf.set(name, held)
