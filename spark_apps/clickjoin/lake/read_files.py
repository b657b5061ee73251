"""Rows of some of a table's files: what was read of a file once need never be read again, as files do not change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from clickjoin.kernel.filesystem import filesystem
from clickjoin.lake.readable import readable
from clickjoin.schemas import BY_NAME
from clickjoin.schemas.arrow import arrow_schema

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

PATH = "path"


def read_files(
    delta: DeltaReader,
    name: str,
    paths: Sequence[str],
    columns: Sequence[str],
    since: tuple[str, datetime] | None = None,
) -> pa.Table:
    """Rows of the files at `paths` (as the log names them), with their file in column `path`.

    `columns`: none of the partition columns, which lie in no file. `since`: a time column, and the oldest to read.
    """
    base, inner = filesystem(delta.path(name))
    whole = arrow_schema(BY_NAME[name])
    schema = pa.schema([whole.field(column) for column in columns])
    if not paths:
        return schema.append(pa.field(PATH, pa.string())).empty_table()
    by_file = {unquote(path): path for path in paths}
    place = pafs.SubTreeFileSystem(inner, base)
    files = ds.FileSystemDataset.from_paths(
        list(by_file), schema=schema, format=ds.ParquetFileFormat(), filesystem=place
    )
    wanted = None if since is None else pc.field(since[0]) >= pa.scalar(since[1], whole.field(since[0]).type)
    with readable(delta.path(name).rpartition("/")[0], name):
        found = files.to_table(columns=[*columns, "__filename"], filter=wanted)
    number = pc.index_in(found["__filename"], pa.array(list(by_file)))
    return found.select(list(columns)).append_column(PATH, pc.take(pa.array(list(by_file.values())), number))
