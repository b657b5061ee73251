"""Replacing a few rows of a table by others in one commit, once a txn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.lake.txn import Txn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake.lake import Lake


def replace_rows(lake: Lake, name: str, where: str, rows: DataFrame, txn: Txn) -> None:
    """Replace exactly the rows that `where` (literal terms) selects by these, all of which it must select too.

    Readers see the table before or after, nothing between. Nothing happens where the table holds the txn already.
    """

    def write() -> None:
        writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", where)
        writer.option("txnAppId", txn.app_id).option("txnVersion", txn.version).save(lake.small.path(name))

    lake._rerun(name, write)
