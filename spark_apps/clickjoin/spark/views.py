"""Rows under a name of their own in SQL, for as long as a statement needs them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def named(rows: DataFrame) -> Iterator[str]:
    """Give rows a name that nobody else has; it is gone after the block."""
    name = f"rows_{uuid.uuid4().hex}"
    rows.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)
