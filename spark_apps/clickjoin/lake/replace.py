"""Replacing a few rows of a table by others in one commit, once a txn; and letting old reports go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from deltalake.exceptions import CommitFailedError

from clickjoin.lake import commits
from clickjoin.lake.txn import Txn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake.lake import Lake
    from clickjoin.lake.small import SmallTables


def replace_rows(lake: Lake, name: str, where: str, rows: DataFrame, txn: Txn) -> None:
    """Replace exactly the rows that `where` (literal terms) selects by these, all of which it must select too.

    Readers see the table before or after, nothing between. Nothing happens where the table holds the txn already.
    """

    def write() -> None:
        writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", where)
        writer.option("txnAppId", txn.app_id).option("txnVersion", txn.version).save(lake.small.path(name))

    lake.rerun(name, write)
    lake.small.noted.saw(name, txn.app_id, txn.version)


def drop_before(small: SmallTables, name: str, column: str, before: datetime) -> bool:
    """Drop a table's rows whose time is before a moment; False if there are none, or if another writer came first."""
    actions = small.files(name)
    oldest = actions[f"min.{column}"].to_pylist() if actions.num_rows else []
    if not any(time is not None and time < before for time in oldest):
        return False
    try:
        table = small.open(name)
        table.delete(f"{column} < '{before.astimezone(UTC).isoformat()}'")
        commits.ensure_rewritten(table)
    except CommitFailedError:
        return False  # the next call finds them
    return True
