"""Small files of a table rewritten into few by Spark's OPTIMIZE, whichever engine commits all else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.engines.commit_errors import commit_error
from clickjoin.lake.maintenance import file_sizes, is_sorted, place_column
from clickjoin.lake.row_groups import for_look_ups
from clickjoin.model import failpoint
from clickjoin.model.errors import CommitRefused

if TYPE_CHECKING:
    from clickjoin.engines.port import Lake
    from clickjoin.schemas import Table

_SORT = "spark.databricks.io.skipping.mdc.sortWithinFiles"
_OF_FILES = "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled"
_MIN_FILE_SIZE = "spark.databricks.delta.optimize.minFileSize"
_MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"


def optimize(lake: Lake, name: str, place: str | None, order: str, whole: bool) -> int | None:
    """See Lake.rewrite.

    By Spark, never by delta-rs: two rewritings of the same files by that one both commit, and every row is double.
    """
    table = lake.delta.table(name)
    where = f" WHERE {place_column(table)} = '{place}'" if place else ""
    by = order if is_sorted(name, order) else _some_column(table, order) if whole else ""
    z_order = f" ZORDER BY ({by})" if by else ""  # all files are rewritten, also one that is alone
    lake.spark.conf.set(_SORT, "true")
    lake.spark.conf.set(_OF_FILES, "false")  # look-ups go by the statistics of row groups
    for setting, size in zip((_MIN_FILE_SIZE, _MAX_FILE_SIZE), file_sizes(name), strict=True):
        lake.spark.conf.set(setting, str(size))
    sql = f"OPTIMIZE delta.`{lake.delta.path(name)}`{where}{z_order}"
    try:
        with for_look_ups(lake.spark, name), failpoint.around_commit(name):
            metrics = lake.spark.sql(sql).collect()[0]["metrics"]
    except Exception as error:
        if not isinstance(commit_error(error), CommitRefused):
            raise
        return None
    return int(metrics["numFilesRemoved"])


def _some_column(table: Table, order: str) -> str:
    free = [column for column in table.names if column not in table.partitions]
    return order if order in free else free[0]
