"""Few rows of a table as a DataFrame, read by this process: on an object store two requests for each file, only once.

Spark opens a file there four times, and waits for one answer after the other. On a disk it is Spark's planning that
costs: a third of what is done with tables of some thousand rows.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from clickjoin.kernel import data_skipping
from clickjoin.kernel.parquet_rows import read_file
from clickjoin.kernel.types import arrow_type
from clickjoin.model.places import is_on_s3
from clickjoin.spark.rows import frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

_ON_S3, _ON_DISK = (200_000, 16 << 20), (20_000, 2 << 20)  # at most so many rows, and bytes of files
_AT_ONCE = 16  # files
_UNPACKED = 64 << 20  # bytes that this process hands to Java: a record of one letter a million times is small on disk
_PARTITION = "partition."


def rows_of_files(spark: SparkSession, root: str, files: pa.Table, columns: Mapping[str, str]) -> DataFrame | None:
    """Rows of some files of the table at a path; None where Spark is to read them: not few, or unreadable.

    `files`: deltalake's flattened add actions. `columns`: the table's, to their Delta types.
    """
    if not files.num_rows:
        return None
    try:
        if not _few(files, *(_ON_S3 if is_on_s3(root) else _ON_DISK)):
            return None
        return frame(spark, _read(root, files, pa.schema([(n, arrow_type(k)) for n, k in columns.items()])))
    except (OSError, ValueError, KeyError, pa.ArrowException):  # what is wrong with a file or column, Spark says
        return None


def rows_of_version(spark: SparkSession, root: str, table: DeltaTable, columns: Mapping[str, str]) -> DataFrame | None:
    """All rows of a table that has been opened, at the version that it shows; None as of `rows_of_files`."""
    if table.protocol().min_reader_version > 1:  # deletion vectors, other names of columns: for Spark to read
        return None
    try:
        files = pa.table(table.get_add_actions(flatten=True))
    except DeltaError:
        return None
    return rows_of_files(spark, root, files, columns)


def _few(files: pa.Table, rows: int, size: int) -> bool:
    known = files["num_records"].null_count == 0
    return known and data_skipping.rows(files) <= rows and pc.sum(files["size_bytes"]).as_py() <= size


def _read(root: str, files: pa.Table, schema: pa.Schema) -> pa.Table:
    partitions = [name for name in files.column_names if name.startswith(_PARTITION)]

    def one(file: Mapping[str, Any]) -> pa.Table:
        rows = read_file(root, unquote(file["path"]), schema)
        _require_few(rows)
        for partition in partitions:  # lies in no file
            field = schema.field(partition.removeprefix(_PARTITION))
            value = pa.scalar(file[partition], field.type)
            rows = rows.set_column(schema.get_field_index(field.name), field, pa.repeat(value, rows.num_rows))
        return rows

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pa.concat_tables(pool.map(one, files.select(["path", *partitions]).to_pylist()))
    _require_few(found)
    return found


def _require_few(rows: pa.Table) -> None:
    if rows.nbytes > _UNPACKED:
        raise ValueError(f"{rows.nbytes} bytes are for Spark to read")
