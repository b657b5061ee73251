"""Replacing a few rows of a table by others in one commit, once a txn; and letting old reports go."""

from __future__ import annotations

from datetime import UTC, datetime
from operator import methodcaller
from typing import TYPE_CHECKING

from deltalake.exceptions import CommitFailedError

from clickjoin.lake.committer import rewritten
from clickjoin.model.txn import Txn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake.delta_tables import DeltaTables
    from clickjoin.lake.spark_tables import SparkTables


def replace_rows(lake: SparkTables, name: str, where: str, rows: DataFrame, txn: Txn) -> None:
    """Replace exactly the rows that `where` (literal terms) selects by these, all of which it must select too.

    Readers see the table before or after, nothing between. Nothing happens where the table holds the txn already.
    """

    def write() -> None:
        writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", where)
        writer.option("txnAppId", txn.app_id).option("txnVersion", txn.version).save(lake.delta.path(name))

    lake.rerun(name, write)
    lake.delta.noted.saw(name, txn.app_id, txn.version)


def drop_before(delta: DeltaTables, name: str, column: str, before: datetime) -> bool:
    """Drop a table's rows whose time is before a moment; False if there are none, or if another writer came first."""
    actions = delta.files(name)
    oldest = actions[f"min.{column}"].to_pylist() if actions.num_rows else []
    if not any(time is not None and time < before for time in oldest):
        return False
    try:
        table = delta.open(name)
        rewritten(table, methodcaller("delete", f"{column} < '{before.astimezone(UTC).isoformat()}'"))
    except CommitFailedError:
        return False  # the next call finds them
    return True
