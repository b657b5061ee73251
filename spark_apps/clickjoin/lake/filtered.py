"""Rows of a table that Arrow cannot filter as it reads them: the files have other types than the table."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pyarrow.parquet import filters_to_expression

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as pafs
    from deltalake import DeltaTable


def filtered_once_read(
    table: DeltaTable, filters: list[Any], columns: list[str] | None, files: pafs.FileSystem
) -> pa.Table:
    """Rows of a table, where a file has texts of another Arrow type than it, as delta-rs writes what a DELETE keeps.

    Arrow compares them once they have been read as the table's type, not before.
    """
    anded = [item for item in filters if isinstance(item, tuple)]  # else the items of a list are lists, or-ed
    partitions = table.metadata().partition_columns
    early = [item for item in anded if not _of_texts(item[2]) or item[0] in partitions]
    late = [item for item in filters if item not in early]
    named = (term[0] for item in late for term in ([item] if isinstance(item, tuple) else item))
    names = None if columns is None else list(dict.fromkeys([*columns, *named]))
    rows = table.to_pyarrow_table(filters=early or None, columns=names, filesystem=files)
    rows = rows.filter(filters_to_expression(late)) if late else rows
    return rows if columns is None else rows.select(columns)


def _of_texts(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Collection) and any(isinstance(one, str) for one in value))
