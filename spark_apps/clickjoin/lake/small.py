"""Tables small enough to be read and written without Spark: the journal, metrics, timeline and boundary.

Also what can be known of any table from its log alone. A commit costs about 10 ms here and a Spark job 300 ms.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType

from clickjoin.errors import LakeError
from clickjoin.lake import commits, restored, written
from clickjoin.lake.noted import Noted, Shown
from clickjoin.lake.txn import Txn
from clickjoin.lake.types import arrow_schema, delta_type
from clickjoin.lake.written import Target, Written
from clickjoin.tables import BY_NAME, Table

# A batch every few seconds makes tens of thousands of versions a day: few checkpoints, a short log.
_SETTINGS = {
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": "interval 3 days",
    # Whoever writes a checkpoint would clean up by its own clock, however wrong; GC does it by the lake's.
    "delta.enableExpiredLogCleanup": "false",
    # Not longer than the log: time travel needs both.
    "delta.deletedFileRetentionDuration": "interval 3 days",
    "delta.enableChangeDataFeed": "false",
    "delta.enableDeletionVectors": "false",
}
_RACES = 100
_PAUSE = 0.02  # seconds, at most, times the number of lost races


def settings(table: Table) -> dict[str, str]:
    """Delta's settings of a table."""
    found = dict(_SETTINGS)
    if table.statistics:
        found["delta.dataSkippingStatsColumns"] = ",".join(table.statistics)
    return found


class SmallTables:
    """The tables under one folder, through their logs alone. One instance a thread, or threads with a table each."""

    def __init__(self, root: str, storage_options: dict[str, str] | None = None) -> None:
        self._root = root
        self._options = storage_options
        self._open: dict[str, DeltaTable] = {}
        self._mark = restored.mark(root)
        self.noted = Noted()

    def path(self, name: str) -> str:
        """Where a table lies."""
        return f"{self._root}/{name}"

    def exists(self, name: str) -> bool:
        """Whether the table has been created."""
        return name in self._open or DeltaTable.is_deltatable(self.path(name), self._options)

    def create(self, table: Table) -> bool:
        """Create an empty table; False if it is there already, also where another process creates it just now."""
        fields = [Field(c.name, PrimitiveType(delta_type(c.type))) for c in table.columns]
        try:
            DeltaTable.create(
                self.path(table.name),
                schema=Schema(fields),
                mode="error",
                partition_by=list(table.partitions),
                configuration=settings(table),
                storage_options=self._options,
                # Another commit of its own would replace the schema and settings that the first one made.
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except DeltaError:
            if self.exists(table.name):
                return False
            raise
        return True

    def open(self, name: str) -> DeltaTable:
        """The table at its newest version. Errors: LakeError where it does not exist, LakeReplaced."""
        try:
            if name in self._open:
                self._open[name].update_incremental()
            else:
                self._open[name] = DeltaTable(self.path(name), storage_options=self._options)
        except TableNotFoundError as error:
            raise LakeError(
                f"{self.path(name)}: no such table",
                remedy="Run `clickjoin registry rebuild`"
                if name == "registry" and self.exists("joined")
                else "Check that the lake is mounted, else run `clickjoin init` with this pipeline",
            ) from error
        except DeltaError:
            self.require_same()  # what it can make nothing of may be another lake's
            raise
        self.require_same()
        return self._open[name]

    def require_same(self) -> None:
        """Check that nothing has been restored or rebuilt since this was made. Errors: LakeReplaced."""
        restored.require_same(self._root, self._mark)

    def replaces(self, what: str, now: datetime) -> None:
        """Let no process but this one commit any more with what it has opened (see restored.leave_mark)."""
        restored.leave_mark(self._root, what, now)
        self._mark = restored.mark(self._root)

    def forget(self, name: str) -> None:
        """Look at a table again the next time: another may lie in its place."""
        self._open.pop(name, None)

    def version(self, name: str) -> int:
        """Newest version of a table."""
        return int(self.open(name).version())

    def settled_txn(self, name: str, app_id: str) -> int:
        """Highest `txnVersion` that a table holds of one `txnAppId`; -1 if none."""
        return self._settled(self.open(name), name, app_id)

    def _settled(self, table: DeltaTable, name: str, app_id: str) -> int:
        found = table.transaction_version(app_id)
        self.noted.saw(name, app_id, int(found or 0))
        return -1 if found is None else int(found)

    def shown(self) -> Shown:
        """Id and version of each table as it was last opened; versions that were lost count."""
        lost = self.noted.lost
        return {
            name: (str(table.metadata().id), int(table.version()) + lost.get(name, 0))
            for name, table in self._open.items()
        }

    def rows(self, name: str) -> int:
        """Number of rows, from the log's statistics alone."""
        actions = self.files(name)
        return int(sum(actions["num_records"].to_pylist())) if actions.num_rows else 0

    def files(self, name: str) -> pa.Table:
        """Files of a table with their partition values and statistics, as deltalake's flattened add actions."""
        return pa.table(self.open(name).get_add_actions(flatten=True))

    def columns(self, name: str) -> dict[str, str]:
        """Column names and their Delta types."""
        return {
            f.name: str(f.type.type if isinstance(f.type, PrimitiveType) else f.type)
            for f in self.open(name).schema().fields
        }

    def add_columns(self, name: str, columns: Mapping[str, str]) -> None:
        """Add columns (name to Spark SQL type) that a table lacks. Errors: LakeError where one has another type."""
        table, known = self.open(name), self.columns(name)
        for column, kind in columns.items():
            if column in known and known[column] != delta_type(kind):
                raise LakeError(
                    f"{self.path(name)}: column {column} is {known[column]}, and the adapter makes it {kind}",
                    remedy="Give the adapter's column another name, or the type it has",
                )
        new = [
            Field(column, PrimitiveType(delta_type(kind))) for column, kind in columns.items() if column not in known
        ]
        if new:
            try:
                table.alter.add_columns(new)
            except DeltaError:
                if any(column not in self.columns(name) for column in columns):
                    raise

    def read(self, name: str, filters: list[Any] | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows of a table as Arrow; filters as pyarrow's `[(column, op, value)]`, pushed down to files."""
        # Arrow's own file system: deltalake's, which is Python underneath, aborts some processes as they exit.
        base, inner = pafs.FileSystem.from_uri(self.path(name))
        files = pafs.SubTreeFileSystem(inner, base)
        return self.open(name).to_pyarrow_table(
            filters=filters, columns=list(columns) if columns else None, filesystem=files
        )

    def append(self, name: str, rows: Sequence[dict[str, Any]], txn: Txn | None = None) -> bool:
        """Append rows in one commit; False, and nothing written, if the table already holds this txn."""
        return self.append_table(name, pa.Table.from_pylist(list(rows), schema=arrow_schema(BY_NAME[name])), txn)

    def append_table(self, name: str, data: pa.Table, txn: Txn | None = None) -> bool:
        """The same with an Arrow table, columns as arrow_schema has them."""
        return self._once(name, lambda: self._files(name, data), txn)

    def add(self, name: str, files: Sequence[Written], txn: Txn) -> bool:
        """Commit files that lie beside a table's own already; False if the table already holds this txn."""
        return self._once(name, lambda: files, txn)

    def _files(self, name: str, data: pa.Table) -> list[Written]:
        table = BY_NAME[name]
        target = Target(self.path(name), data.schema, table.partitions, table.statistics or tuple(table.names))
        return written.write(target, data)

    def fix(self, name: str, txn: Txn) -> bool:
        """Commit a txn without rows, so that no late copy of the same batch can commit rows under it.

        False if the table holds the txn already.
        """
        return self.add(name, [], txn)

    def _once(self, name: str, write: Callable[[], Sequence[Written]], txn: Txn | None) -> bool:
        files: Sequence[Written] | None = None
        for race in range(_RACES):
            table = self.open(name)
            if txn and self._settled(table, name, txn.app_id) >= txn.version:
                commits.ensure_durable(table)  # a copy of this batch may have been killed before it could
                return False
            files = write() if files is None else files
            # Where another writer of this txn came first, the next look will see it.
            if _taken(table, files, txn):
                if txn:
                    self.noted.saw(name, txn.app_id, txn.version)
                return True
            time.sleep(random.uniform(0, _PAUSE * min(race, 20)))
        raise LakeError(f"{self.path(name)}: lost {_RACES} commits in a row", remedy="Look for a runaway writer")

    def append_next(self, table: DeltaTable, name: str, data: pa.Table, txn: Txn) -> bool:
        """Append rows as the very next version after the one that a handle shows; False if another commit came first.

        Columns as arrow_schema.
        """
        return _taken(table, self._files(name, data), txn)

    def add_next(self, table: DeltaTable, files: Sequence[Written], txn: Txn) -> bool:
        """Commit files as the very next version after the one that a handle shows; False if another came first."""
        return _taken(table, files, txn)

    def commit_next(self, name: str, version: int, txn: Txn) -> bool:
        """Commit a txn without rows as the very next version after one; False if another commit came first."""
        table = self.open(name)
        return int(table.version()) == version and self.add_next(table, [], txn)


def _taken(table: DeltaTable, files: Sequence[Written], txn: Txn | None) -> bool:
    """Whether a commit was taken, and not refused for another that came first."""
    try:
        commits.add(table, files, txn)
    except CommitFailedError:
        return False
    return True
