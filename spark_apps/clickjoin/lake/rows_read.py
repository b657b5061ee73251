"""Rows of a table in this process: by delta-rs and Arrow; short files on S3 are read whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.lake import stored_rows
from clickjoin.lake.filtered import filtered_once_read
from clickjoin.lake.s3_table import S3Table

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from deltalake import DeltaTable


def rows(table: DeltaTable, filters: list[Any] | None, columns: list[str] | None, files: pafs.FileSystem) -> pa.Table:
    """Rows at the version that a handle shows; filters as pyarrow's, pushed down to files."""
    try:
        if isinstance(table, S3Table):
            return stored_rows.read(table, filters, columns, files)
        return table.to_pyarrow_table(filters=filters, columns=columns, filesystem=files)
    except pa.ArrowNotImplementedError:
        return filtered_once_read(table, filters or [], columns, files)
