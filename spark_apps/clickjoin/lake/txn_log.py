"""The newest transaction of each application in one table, kept from look to look.

delta-rs reads every entry since the last checkpoint again at each question; here a new entry is read once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.kernel.filesystem import filesystem
from clickjoin.lake.log_entries import LogState, read_entry, read_log

if TYPE_CHECKING:
    from deltalake import DeltaTable


class TxnLog:
    """The transactions of the table at a path, up to the newest version that has been asked for."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._state, self._version = LogState(), -1

    def latest(self, table: DeltaTable, app_id: str) -> int | None:
        """Newest `txnVersion` of one `txnAppId` at the version of an opened table, or later; None if it has none."""
        version = int(table.version())
        if (self._version < 0 or not self._follow(version)) and not self._read(version):
            found = table.transaction_version(app_id)  # a damaged log: delta-rs says what can be made of it
            return None if found is None else int(found)
        return self._state.txns.get(app_id)

    def committed(self, version: int, app_id: str, number: int) -> None:
        """Take in a commit of this process's own, so that it need not be read."""
        if version == self._version + 1:
            self._state.take({"txn": {"appId": app_id, "version": number}})
            self._version = version

    def _follow(self, version: int) -> bool:
        """Read the entries that have come; False where one cannot be, or the log has become shorter."""
        if version < self._version:
            return False
        files, root = filesystem(self.path)
        for number in range(self._version + 1, version + 1):
            try:
                if self._state.take_entry(read_entry(files, f"{root}/_delta_log", number), number):
                    return False
            except FileNotFoundError:  # cleaned up: a checkpoint holds it
                return False
            self._version = number
        return True

    def _read(self, version: int) -> bool:
        """Read all of the log; False where it is damaged, or ends before a version."""
        log = read_log(self.path)
        self._version = -1
        if log.torn or log.version < version:
            return False
        self._state, self._version = LogState(log.table_id, dict(log.settings), dict(log.txns)), log.version
        return True
