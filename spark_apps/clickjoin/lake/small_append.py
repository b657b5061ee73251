"""Few rows of a DataFrame, appended by this process: a commit of delta-rs costs a tenth of what a Spark job does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.kernel.types import arrow_type
from clickjoin.lake.committer import Unwritable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake.delta_tables import DeltaTables
    from clickjoin.lake.spark_tables import SparkTables
    from clickjoin.model.txn import Txn


def collected(delta: DeltaTables, name: str, rows: DataFrame) -> pa.Table:
    """Rows for a table in this process, with the types that it has. Columns in: the table's, and others."""
    kinds = delta.columns(name)
    wanted = [column for column in rows.columns if column in kinds]
    got: Any = rows.select(*(f"`{column}`" for column in wanted)).toArrow()
    return pa.table({column: got[column].cast(arrow_type(kinds[column])) for column in wanted})


def append(lake: SparkTables, name: str, rows: DataFrame, txn: Txn) -> bool:
    """SparkTables.append for few rows. By Spark where the table has a feature that delta-rs cannot write."""
    try:
        return lake.append(name, collected(lake.delta, name, rows), txn)
    except Unwritable:
        return lake.append(name, rows, txn)
