"""One version of a table, and the commit that is the very next one after it or none: compare-and-set on a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake.exceptions import CommitFailedError

from clickjoin.lake.committer import committer
from clickjoin.model import failpoint

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from clickjoin.kernel.data_file import DataFile
    from clickjoin.model.txn import Txn


class TableVersion:
    """What a table holds at one version. It does not move on by itself."""

    def __init__(self, table: DeltaTable, latest_txn: Callable[[str], int | None] | None = None) -> None:
        """`latest_txn`: a cheaper way to the highest `txnVersion` of a `txnAppId`."""
        self._table, self._latest_txn = table, latest_txn or table.transaction_version

    @property
    def version(self) -> int:
        """Its number."""
        return int(self._table.version())

    def holds(self, txn: Txn) -> bool:
        """Whether it holds a txn, or a later one of the same application."""
        latest = self._latest_txn(txn.app_id)
        return latest is not None and int(latest) >= txn.version

    def files(self) -> pa.Table:
        """Its files with partition values and statistics, as deltalake's flattened add actions."""
        return pa.table(self._table.get_add_actions(flatten=True))

    def commit_next(self, files: Sequence[DataFile], txn: Txn | None, removed: Sequence[DataFile] = ()) -> bool:
        """Commit files as the very next version; False if another commit came first. Errors: as of Committer.

        `removed`: files of this version that they replace.
        """
        try:
            with failpoint.around_commit(self._table.table_uri):
                committer(self._table.table_uri).commit_next(self._table, files, txn, removed)
        except CommitFailedError:
            return False
        return True
