"""Rows of a table on S3: short files are read whole and side by side, by a request each.

Arrow asks three times for a file, one after the other, and reads four files at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
from pyarrow.parquet import filters_to_expression

from clickjoin.kernel.filesystem import SHORT, held, keep
from clickjoin.lake.objects import Objects
from clickjoin.lake.side_by_side import each

if TYPE_CHECKING:
    from clickjoin.lake.s3_table import S3Table

_MOST_FILES = 1_000  # which are read whole


def read(table: S3Table, filters: list[Any] | None, columns: Sequence[str] | None, files: pafs.FileSystem) -> pa.Table:
    """Rows as delta-rs has them read: filters as pyarrow's, pushed down to files. Errors: those of Arrow, OSError."""
    where = filters_to_expression(filters) if filters is not None else None
    whole = table.to_pyarrow_dataset(filesystem=files)
    wanted = list(whole.get_fragments(filter=where))
    if len(wanted) <= _MOST_FILES:
        whole = ds.FileSystemDataset(_at_hand(table, wanted), whole.schema, whole.format, files)
    return whole.to_table(columns=None if columns is None else list(columns), filter=where)


def _at_hand(table: S3Table, files: list[ds.ParquetFileFragment]) -> list[ds.Fragment]:
    """Files as they are read best: the short ones from memory, with what is known of them beside."""
    if not files:
        return []
    known = pa.table(table.get_add_actions())
    sizes = dict(zip(map(unquote, known["path"].to_pylist()), known["size_bytes"].to_pylist(), strict=True))
    store = Objects(table.uri)

    def one(file: ds.ParquetFileFragment) -> ds.Fragment:
        if sizes.get(file.path, SHORT + 1) > SHORT:
            return file
        data = held(table.uri, file.path)
        if data is None and (read := store.get(file.path)) is not None:
            data = pa.py_buffer(read)
            keep(table.uri, file.path, data)
        if data is None:  # it is gone: Arrow says so
            return file
        return file.format.make_fragment(data, partition_expression=file.partition_expression)

    return each(one, files)
