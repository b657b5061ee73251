"""Commits of delta-rs: rows, or files that lie there already, under a transaction of the product's own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction

from clickjoin.errors import BatchError, LakeError
from clickjoin.lake.txn import Txn
from clickjoin.lake.types import arrow_type

if TYPE_CHECKING:
    from clickjoin.lake.written import Written

_STALE = 1800.0  # seconds; VACUUM leaves files alone for an hour at least (keep.files)
_PACKED = WriterProperties(compression="ZSTD")


class Unwritable(LakeError):
    """Somebody has given a table a feature that only Spark can write."""


def write(table: DeltaTable, data: pa.Table, properties: CommitProperties | None) -> None:
    """Append rows. Errors: CommitFailedError where the commit is refused, Unwritable."""
    for field in table.schema().fields:  # columns that a later version, or an earlier adapter, has added
        if field.name not in data.column_names:
            data = data.append_column(field.name, pa.nulls(data.num_rows, arrow_type(str(field.type.type))))
    try:
        write_deltalake(table, data, mode="append", commit_properties=properties, writer_properties=_PACKED)
    except CommitFailedError as error:
        _raise_unwritable(table, error)
        raise


def add(table: DeltaTable, files: Sequence[Written], properties: CommitProperties | None) -> None:
    """Add files that lie beside the table's own, or none: a txn alone. Errors: as of `write`, BatchError."""
    now = time.time()
    if files and now - min(file.at for file in files) > _STALE:
        raise BatchError(
            f"{table.table_uri}: files that wait to be added were written more than half an hour ago; VACUUM may have "
            "removed them",
            remedy="Run the batch again: it writes others",
        )
    adds: list[Any] = [AddAction(f.path, f.size, f.values, int(now * 1000), True, f.stats) for f in files]
    try:
        table.create_write_transaction(adds, "append", table.schema(), commit_properties=properties)
    except CommitFailedError as error:
        _raise_unwritable(table, error)
        raise


def _raise_unwritable(table: DeltaTable, error: CommitFailedError) -> None:
    if "Unsupported table features" in str(error):
        raise Unwritable(f"{table.table_uri}: {error}", remedy="Take the feature away from the table again") from error


def very_next(txn: Txn) -> CommitProperties:
    """For a commit that carries a txn, as the very next version or not at all."""
    return CommitProperties(max_commit_retries=0, app_transactions=[Transaction(txn.app_id, txn.version)])


def carrying(txn: Txn | None) -> CommitProperties | None:
    """For a commit that carries a txn, where there is one."""
    return CommitProperties(app_transactions=[Transaction(txn.app_id, txn.version)]) if txn else None
