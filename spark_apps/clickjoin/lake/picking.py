"""Rows that have one of some ids, out of data files: times are read first, then ids, and the rest where one is found.

Few rows share a microsecond, and times cost a tenth of what ids cost. Runs on workers, which need no clickjoin.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from clickjoin.arrays import numbers
from clickjoin.lake.prune import EVER, Ends, near

_ID, _TIME = "event_id", "event_time"
_FEW_VALUES = ["generation", "replica"]  # to copy their texts for each row costs more than all the rest
_MICROS = pa.timestamp("us", "UTC")
KEYS = pa.schema([(_ID, pa.string()), (_TIME, _MICROS)])  # what an event is known by


class Stretches(NamedTuple):
    """Event times that are looked for: from each start on (sorted, microseconds) for some length; 0: just then."""

    starts: np.ndarray[Any, Any]
    length: int = 0


def pick(
    root: str, files: Sequence[str], ids: pa.Array, when: Stretches, schema: pa.Schema, readers: int = 2
) -> pa.Table:
    """Rows of some files below a folder whose `event_id` is one of these, and whose `event_time` lies in a stretch.

    Rows of other times may be among them where the stretches have a length. Columns out: the schema's, which names
    both; unknown ones null. Errors: FileNotFoundError where a file has gone.
    """
    folder = _folder(root)
    times = None if when.length else numbers(when.starts, _MICROS)

    def one(file: str) -> list[pa.RecordBatch]:
        with folder.open_input_file(file) as opened:
            known = pq.read_metadata(opened)
            few = [name for name in _FEW_VALUES if name in known.schema.names]
            found = pq.ParquetFile(opened, metadata=known, read_dictionary=few)
            parts = (_group(found, int(number), ids, times, schema) for number in _groups(found.metadata, when))
            return [batch for part in parts if part is not None for batch in part.to_batches()]

    with ThreadPoolExecutor(readers) as pool:
        return pa.Table.from_batches([batch for held in pool.map(one, files) for batch in held], schema=schema)


def whole(root: str, files: Sequence[str], schema: pa.Schema) -> pa.Table:
    """All rows of some files below a folder. Columns out: the schema's; unknown ones null."""
    folder, tables = _folder(root), []
    for file in files:
        with folder.open_input_file(file) as opened:
            found = pq.ParquetFile(opened)
            names = [name for name in schema.names if name in found.schema_arrow.names]
            tables.append(_shaped(found.read(columns=names, use_threads=False), schema))
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema)


def _folder(root: str) -> pafs.FileSystem:
    system, base = pafs.FileSystem.from_uri(root)
    return pafs.SubTreeFileSystem(base, system)


def _groups(metadata: Any, when: Stretches) -> np.ndarray[Any, Any]:
    """The row groups that can hold such a time: in a file that is sorted, or grew, each is a short stretch."""
    column = next(n for n in range(metadata.num_columns) if metadata.schema.column(n).path == _TIME)
    known = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
    ends = [(s.min_raw, s.max_raw) if s is not None and s.has_min_max else (-EVER, EVER) for s in known]
    least, most = (np.array([end[side] for end in ends], np.int64) for side in (0, 1))
    return np.flatnonzero(near(Ends(least, most), when.starts, when.length))


def _group(file: Any, number: int, ids: pa.Array, times: pa.Array | None, schema: pa.Schema) -> pa.Table | None:
    keep, known = None, {}
    for name, wanted in ((_TIME, times), (_ID, ids)):
        if wanted is None:
            continue
        known[name] = file.read_row_group(number, columns=[name], use_threads=False)[name]
        found = pc.is_in(known[name].cast(wanted.type), value_set=wanted)
        keep = found if keep is None else pc.and_(keep, found)
        if not pc.any(keep).as_py():
            return None
    more = [name for name in schema.names if name in file.schema_arrow.names and name not in known]
    rows = file.read_row_group(number, columns=more, use_threads=False).filter(keep) if more else None
    picked = {name: column.filter(keep) for name, column in known.items()}
    picked |= {name: rows[name] for name in more} if rows is not None else {}
    return _shaped(pa.table(list(picked.values()), names=list(picked)), schema)


def _shaped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)
