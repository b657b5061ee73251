"""Rows of DataFrames: those of an Arrow table, one of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from clickjoin.model.ids import EVENT_KEY

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

NTH = "_nth"


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame; also an empty one, whose columns Spark Connect does not tell by itself."""
    if table.num_rows:
        return spark.createDataFrame(table)
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame([], from_arrow_schema(table.schema))


def ranked(rows: DataFrame, *order: Any, key: tuple[str, ...] = EVENT_KEY) -> DataFrame:
    """Rows with their rank (column `_nth`, from 1) among those with the same key, in an order."""
    return rows.withColumn(NTH, F.row_number().over(Window.partitionBy(*key).orderBy(*order)))


def first_of_key(rows: DataFrame, *order: Any, key: tuple[str, ...] = EVENT_KEY) -> DataFrame:
    """Of rows with the same key the first in an order."""
    return ranked(rows, *order, key=key).where(f"{NTH} = 1").drop(NTH)
