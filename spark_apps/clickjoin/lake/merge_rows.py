"""Emptying or removing single rows of any table: a MERGE by Spark, which writes the files again that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from clickjoin.lake.row_groups import for_look_ups

if TYPE_CHECKING:
    from clickjoin.lake.spark_tables import SparkTables


def update_rows(lake: SparkTables, name: str, view: str, on: str, values: Mapping[str, str]) -> int:
    """Set columns (to SQL expressions) of the rows `t` that match one of a view's, `s`. Returns how many.

    `on`: with literal terms on `t`, which prune files and keep concurrent writers apart.
    """
    sets = ", ".join(f"t.`{column}` = {value}" for column, value in values.items())
    return _merge(lake, name, view, on, f"UPDATE SET {sets}")


def delete_rows(lake: SparkTables, name: str, view: str, on: str) -> int:
    """Remove the rows that match; see update_rows."""
    return _merge(lake, name, view, on, "DELETE")


def _merge(lake: SparkTables, name: str, view: str, on: str, what: str) -> int:
    sql = f"MERGE INTO delta.`{lake.delta.path(name)}` t USING {view} s ON {on} WHEN MATCHED THEN {what}"
    with for_look_ups(lake.spark, name):
        return int(lake.rerun(name, lambda: lake.spark.sql(sql).collect())[0]["num_affected_rows"])
