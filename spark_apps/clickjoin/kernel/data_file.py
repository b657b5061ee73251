"""Data files that Spark's tasks write themselves; one commit then adds them, and no row passes through the driver.

A file is on disk before it is handed on. One that is never committed is an orphan, and VACUUM takes it away. Runs on
workers, which need no clickjoin.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from clickjoin.kernel.arrays import int64_array, text_array, to_numpy
from clickjoin.kernel.filesystem import filesystem, flush_data, make_folder
from clickjoin.kernel.types import RecordFn
from clickjoin.model.ids import moment

Piece = range | np.ndarray[Any, Any]
ROWS_A_GROUP = 2_048  # who looks for few rows reads little beside them
_FLUSH = 64 << 20  # bytes that a task holds before it writes
_AT_ONCE = 16  # files, where each is a request
_LONG_RUN = 1_000  # rows
_LONGEST = 64  # characters of a text in a file's statistics
_LAST = "\U0010ffff"  # the last character there is
# A column of few values is written as a dictionary; to try that with ids and records costs time and saves nothing.
_FEW_VALUES = ("batch", "replica", "landed_at", "path", "source_partition", "token", "outcome", "published_at", "shard")


class Target(NamedTuple):
    """A table that files are written for: where it lies, the columns of a row, and the table's own settings."""

    root: str
    schema: pa.Schema
    partitions: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()


class DataFile(NamedTuple):
    """A file beside a table's own: its path below the table, bytes, rows, partition values, and statistics as JSON."""

    path: str
    size: int
    rows: int
    values: dict[str, str]
    stats: str


def write(target: Target, rows: pa.Table, order: str = "") -> list[DataFile]:
    """Write rows as one file for each partition; sorted by one column where `order` names it.

    Columns in: those of the target's schema, in any order.
    """
    return write_each([(target, rows, order)])[0]


def write_batches(target: Target) -> RecordFn:
    """What a task does with its rows: writes them as files, and says which. Column out: done (JSON)."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for held in gathered(batches):
            files = write(target, pa.Table.from_batches(held))
            yield pa.RecordBatch.from_arrays([text_array([json.dumps(files)], pa.string())], ["done"])

    return run


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches of a task, as many at a time as it holds before it writes a file for each partition."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > _FLUSH:
            yield held
            held, size = [], 0
    if held:
        yield held


def write_each(work: Sequence[tuple[Target, pa.Table, str]]) -> list[list[DataFile]]:
    """Write rows of several tables of one lake, as `write` does; the files of each."""
    made, sent = [], []
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # one file is sent while the next is encoded
        for target, rows, order in work:
            system, root = filesystem(target.root)
            is_local = isinstance(system, pafs.LocalFileSystem)
            files = []
            for part in _parts(rows.select(target.schema.names).cast(target.schema), target.partitions):
                file, data = _encoded(target, *part, order)
                files.append(file)
                store = (system, f"{root}/{file.path}", data)
                if is_local:
                    _store(*store)
                else:
                    sent.append(pool.submit(_store, *store))
            if is_local:
                flush_data(Path(root), *(file.path for file in files))
            made.append(files)
        for one in sent:
            one.result()
    return made


def _parts(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[dict[str, str], pa.Table]]:
    if not names or not rows.num_rows:
        yield from [({}, rows)] if rows.num_rows else []
        return
    codes = np.zeros(rows.num_rows, np.int64)
    for name in names:
        if rows[name].null_count:
            raise ValueError(f"{name}: {rows[name].null_count} rows have none, and their table is partitioned by it")
        found = _whole(rows[name]).dictionary_encode()
        codes = codes * max(len(found.dictionary), 1) + to_numpy(found.indices)
    by_code = list(pieces_by_code(codes))
    named = [piece for pieces in by_code for piece in pieces if not isinstance(piece, range)]
    strays, at = rows.take(int64_array(np.concatenate(named))) if named else rows, 0  # at once: a call costs as much
    for pieces in by_code:
        tables = []
        for piece in pieces:
            held, first = (rows, piece.start) if isinstance(piece, range) else (strays, at)
            tables.append(held.slice(first, len(piece)))
            at += 0 if isinstance(piece, range) else len(piece)
        part = pa.concat_tables(tables)
        yield {name: str(part[name][0].as_py()) for name in names}, part


def pieces_by_code(codes: np.ndarray[Any, Any]) -> Iterator[list[Piece]]:
    """Row numbers of each code, one or more rows, in their order: a long run of rows is a range, others are named.

    Logs are about in the order of time, and so of buckets: rows of such a run need not be copied.
    """
    edges = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1, append=codes[-1] + 1))
    order = np.argsort(codes[edges[:-1]], kind="stable")
    start, length = edges[:-1][order], np.diff(edges)[order]
    is_long, code = length >= _LONG_RUN, codes[start]
    first = np.flatnonzero(
        np.r_[True, (code[1:] != code[:-1]) | is_long[1:] | is_long[:-1]]
    )  # of runs that are one piece: a long one, or short ones that follow one another
    named = np.repeat(start - (np.cumsum(length) - length), length) + np.arange(len(codes))
    begins = np.cumsum(length) - length
    last: int | None = None
    pieces: list[Piece] = []
    for at, low, high in zip(first, begins[first], [*begins[first[1:]], len(codes)], strict=True):
        if pieces and code[at] != last:
            yield pieces
            pieces = []
        pieces.append(range(start[at], start[at] + length[at]) if is_long[at] else named[low:high])
        last = code[at]
    yield pieces


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) and found.num_chunks == 1 else found


def _encoded(target: Target, values: dict[str, str], rows: pa.Table, order: str) -> tuple[DataFile, pa.Buffer]:
    if order:
        rows = rows.take(pc.sort_indices(rows, sort_keys=[(order, "ascending")]))
    folder = "/".join(f"{name}={value}" for name, value in values.items())
    path = f"{folder}/part-{uuid.uuid4()}.zstd.parquet".lstrip("/")
    held = rows.drop_columns(list(values)) if values else rows
    few = [name for name in held.column_names if name in _FEW_VALUES]
    sink = pa.BufferOutputStream()
    pq.write_table(held, sink, compression="zstd", use_dictionary=few, row_group_size=ROWS_A_GROUP)
    data = sink.getvalue()
    return DataFile(path, data.size, rows.num_rows, values, _stats(rows, target)), data


def _store(system: pafs.FileSystem, path: str, data: pa.Buffer) -> None:
    make_folder(system, path.rpartition("/")[0])
    with system.open_output_stream(path) as out:
        out.write(data)


def _stats(rows: pa.Table, target: Target) -> str:
    """Statistics of a file as Delta has them; its rows' number alone where some column has values and no end.

    Readers (delta-rs 1.6) take an end that is missing beside others for null, and find no row of the file.
    """
    # A column that the pipeline's file no longer has keeps its place in the table, and is in no new file.
    names = [name for name in target.statistics if name not in target.partitions and name in rows.column_names]
    nulls = {name: rows[name].null_count for name in names}
    ends = {name: _ends(rows[name]) for name in names if nulls[name] < rows.num_rows}
    known = {name: pair for name, pair in ends.items() if pair}
    if len(known) < len(ends):
        return json.dumps({"numRecords": rows.num_rows})
    low, high = (", ".join(f"{json.dumps(name)}: {pair[end]}" for name, pair in known.items()) for end in (0, 1))
    values = f'"minValues": {{{low}}}, "maxValues": {{{high}}}'
    return f'{{"numRecords": {rows.num_rows}, {values}, "nullCount": {json.dumps(nulls)}}}'


def _ends(column: pa.ChunkedArray) -> tuple[str, str] | None:
    """Least and greatest value as JSON; None where JSON or Python has none of them."""
    is_time = pa.types.is_timestamp(column.type)
    # Spark has NaN above all numbers, Arrow passes over it, and JSON has none.
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return None
    found = pc.min_max(column.cast(pa.int64()) if is_time else column)
    try:
        low, high = found["min"].as_py(), found["max"].as_py()
        if is_time:
            low, high = (moment(end).isoformat(timespec="microseconds").replace("+00:00", "Z") for end in (low, high))
    except (OverflowError, ValueError):
        return None  # a year that Python has no date of
    if isinstance(low, str):  # a log is no place for ids of megabytes
        low, high = low[:_LONGEST], _above(high)
    return _as_json(low), _as_json(high)


def _above(value: str) -> str:
    """A short text that is not below a long one."""
    if len(value) <= _LONGEST:
        return value
    end = next((at for at in range(_LONGEST, len(value)) if value[at] != _LAST), len(value))
    return value[:end] + _LAST if end < len(value) else value


def _as_json(value: Any) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"  # what readers of JSON take for infinity
    if isinstance(value, Decimal):
        return f"{value:f}"
    # Not escaped: delta-rs 1.6 takes a pair of surrogates for another character.
    return json.dumps(value.isoformat() if isinstance(value, date) else value, ensure_ascii=False)
