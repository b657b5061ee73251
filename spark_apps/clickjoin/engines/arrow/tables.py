"""Commits of delta-rs: rows of this process, files that lie beside a table already, settings, deletions.

Each is the very next version after one that was looked at, or none: the loser looks again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from operator import methodcaller
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import PrimitiveType

from clickjoin.engines.tables_port import Settings, Tables, UnderWay
from clickjoin.kernel import data_file
from clickjoin.kernel.data_file import DataFile, Target
from clickjoin.kernel.types import arrow_type, delta_type
from clickjoin.lake.committer import committer, rewritten
from clickjoin.lake.maintenance import LARGE, Size, sizes_of
from clickjoin.lake.s3_table import S3Table
from clickjoin.lake.side_by_side import together
from clickjoin.lake.table_settings import settings
from clickjoin.lake.table_version import TableVersion
from clickjoin.model import failpoint
from clickjoin.model.errors import LakeError
from clickjoin.model.txn import Txn
from clickjoin.schemas import Table
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.schemas.format import FORMAT, KEY

_RACES = 100
_DELETIONS = 10
_PAUSE = 0.02  # seconds, at most, times the number of lost races


class ArrowTables(Tables):
    """The tables under one folder, to read and to commit to by delta-rs."""

    def copy(self) -> ArrowTables:
        """See Tables."""
        return ArrowTables(self._root, self._own, self._within)

    def create(self, table: Table) -> bool:
        """Create an empty table that says its format; False if it is there already, or another process was first."""
        fields = [_field(c.name, c.type, c.meaning) for c in table.columns]
        try:
            with failpoint.around_commit(table.name):
                DeltaTable.create(
                    self.path(table.name),
                    schema=Schema(fields),
                    mode="error",
                    description=table.purpose,
                    partition_by=list(table.partitions),
                    configuration=settings(table) | {KEY: str(FORMAT)},
                    raise_if_key_not_exists=False,  # the format is no property of Delta's
                    storage_options=self._options,
                    # Another commit of its own would replace the schema and settings that the first one made.
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
        except DeltaError:
            if self.exists(table.name):
                return False
            raise
        return True

    def _change_settings(self, name: str, change: Settings, last: bool) -> bool:
        """See Tables."""
        fields = [_field(column, kind, change.comments.get(column)) for column, kind in change.columns.items()]
        try:
            with failpoint.around_commit(name):
                alter = self.open(name).alter
                if fields:
                    alter.add_columns(fields)
                else:
                    alter.set_table_properties(dict(change.properties), raise_if_not_exists=False)
        except DeltaError:
            if last:
                raise
            return False
        finally:
            self.forget(name)
        return True

    def append(self, name: str, rows: Sequence[dict[str, Any]], txn: Txn | None = None) -> bool:
        """Append rows in one commit; False, and nothing written, if the table already holds this txn."""
        return self.append_table(name, pa.Table.from_pylist(list(rows), schema=arrow_schema(self.table(name))), txn)

    def append_table(self, name: str, data: pa.Table, txn: Txn | None = None) -> bool:
        """The same with an Arrow table, columns as arrow_schema has them."""
        return self._once(name, lambda: self.write(name, data), txn)

    def add(self, name: str, files: Sequence[DataFile], txn: Txn) -> bool:
        """Commit files that lie beside a table's own already; False if the table already holds this txn."""
        return self._once(name, tuple, txn, files)

    def write(self, name: str, data: pa.Table) -> list[DataFile]:
        """Write rows as data files of a table, in no version of it yet; columns as arrow_schema."""
        table = self.table(name)
        target = Target(self.path(name), data.schema, table.partitions, table.statistics or tuple(table.names))
        files = data_file.write(target, data)
        if isinstance(known := self._open.get(name), S3Table):
            known.wrote(file.path for file in files)
        return files

    def commit_txn_only(self, name: str, txn: Txn) -> bool:
        """Commit a txn without rows, so that no late copy of the same batch can commit rows under it.

        False if the table holds the txn already.
        """
        return self.add(name, [], txn)

    def ensure_durable(self, name: str) -> None:
        """Flush a table's newest versions to disk, no matter who wrote them. Errors: CommitStateUnknown."""
        table = self.open(name)
        committer(table.table_uri).ensure_durable(table)

    def _once(
        self,
        name: str,
        write: Callable[[], Sequence[DataFile]],
        txn: Txn | None,
        files: Sequence[DataFile] | None = None,
    ) -> bool:
        for race in range(_RACES):
            table = self._base(name)
            if txn and self._settled(table, name, txn.app_id) >= txn.version:
                committer(table.table_uri).ensure_durable(
                    table
                )  # a copy of this batch may have been killed before it could
                return False
            if files is None:
                files = self._checked(table, write)
            # Where another writer of this txn came first, the next look will see it.
            if TableVersion(table).commit_next(files, txn):
                if txn:
                    self.committed(name, int(table.version()) + 1, txn)
                return True
            time.sleep(random.uniform(0, _PAUSE * min(race, 20)))
        raise LakeError(f"{self.path(name)}: lost {_RACES} commits in a row", remedy="Look for a runaway writer")

    def _base(self, name: str) -> DeltaTable:
        """The newest version of a table that is known, which a commit of the very next one is worth trying after.

        On S3 that is what this process saw or made last: where another has committed since, the store refuses, and the
        next look is a new one. Elsewhere a look costs nothing.
        """
        return self._opened(name, looks=False)

    def _checked(self, table: DeltaTable, write: Callable[[], Sequence[DataFile]]) -> Sequence[DataFile]:
        if not isinstance(table, S3Table):
            return write()
        files: Sequence[DataFile] = together(write, table.check)[0]
        return files

    def committed(self, name: str, version: int, txn: Txn) -> None:
        """Note that a version of a table, which this process has committed, holds a txn."""
        self.noted.saw(name, txn.app_id, txn.version)
        if name in self._txns:
            self._txns[name].committed(version, txn.app_id, txn.version)

    def newest(self, name: str) -> TableVersion:
        """The newest version of a table, to commit the very next one after it. Errors: as of `open`."""
        table = self.open(name)
        return TableVersion(table, partial(self._latest_txn, name, table))

    def known(self, name: str) -> TableVersion:
        """The same of the newest version that is known: a commit after it finds out whether it is the newest."""
        table = self._base(name)
        return TableVersion(table, partial(self._latest_txn, name, table))

    def append_next(self, name: str, version: int, row: dict[str, Any], unless: str, txn: Txn | None = None) -> bool:
        """See Tables. As the very next version: whatever came is taken for what `unless` names."""
        newest = self.newest(name)
        if newest.version != version:
            return False
        files = self.write(name, pa.Table.from_pylist([row], schema=arrow_schema(self.table(name))))
        return newest.commit_next(files, txn)

    def delete(self, name: str, where: str) -> int:
        """See Tables. A commit of metadata alone where whole partitions go."""
        for _ in range(_DELETIONS):
            try:
                done = rewritten(self.open(name), methodcaller("delete", where))
                return int(done["num_deleted_rows"] or 0)
            except CommitFailedError:
                continue  # another writer came first: look again
        raise self._busy(name)

    def drop_buckets(self, name: str, before: str, under_way: Callable[[], UnderWay] | None = None) -> Size:
        """See Tables. It is asked after the table's version was fixed: a batch that lands later is a refusal."""
        for _ in range(_DELETIONS):
            table = self.open(name)
            actions = pa.table(table.get_add_actions(flatten=True))
            first = min([before, *(_holding(actions, under_way().open) if under_way else ())])
            going = sum((size for bucket, size in sizes_of(actions, "bucket").items() if bucket < first), Size())
            try:
                if going.files:
                    rewritten(table, methodcaller("delete", f"bucket < '{first}'"))
                return going
            except CommitFailedError:
                continue  # another writer came first: look again
        raise self._busy(name)

    def drop_before(self, name: str, column: str, before: datetime) -> bool:
        """See Tables."""
        actions = self.files(name)
        oldest = actions[f"min.{column}"].to_pylist() if actions.num_rows else []
        if not any(time is not None and time < before for time in oldest):
            return False
        try:
            rewritten(self.open(name), methodcaller("delete", f"{column} < '{before.astimezone(UTC).isoformat()}'"))
        except CommitFailedError:
            return False  # the next call finds them
        return True

    def compact(self, name: str, fewest: int) -> int:
        """See Tables. For tables that Spark is not started for."""
        small = [size for size in self.files(name)["size_bytes"].to_pylist() if size < LARGE] if self.rows(name) else []
        if len(small) < fewest:
            return 0
        try:
            done = rewritten(self.open(name), lambda small: small.optimize.compact(target_size=LARGE))
        except CommitFailedError:
            return 0
        return int(done["numFilesRemoved"])

    def _busy(self, name: str) -> LakeError:
        return LakeError(
            f"{self.path(name)}: lost {_DELETIONS} commits in a row",
            remedy="Run it again when fewer writers are active",
        )


def _field(name: str, kind: str, meaning: str | None) -> Field:
    named = delta_type(kind)
    rows = named.startswith("array")
    own: Any = (
        Schema.from_arrow(pa.schema([(name, arrow_type(named))])).fields[0].type if rows else PrimitiveType(named)
    )
    return Field(name, own, metadata={"comment": meaning} if meaning else None)


def _holding(actions: pa.Table, batches: Iterable[int]) -> list[str]:
    """Buckets of files that can hold rows of some batches; rows of another replica's same number count too."""
    rows = actions.select(["partition.bucket", "min.batch", "max.batch"]).to_pylist() if actions.num_rows else []
    return [
        row["partition.bucket"]
        for batch in batches
        for row in rows
        if row["min.batch"] is None or row["min.batch"] <= batch <= row["max.batch"]
    ]
