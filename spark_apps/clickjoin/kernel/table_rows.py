"""Rows of a Delta table's files as records: each row is a line of JSON, and is known by its number in its version.

Where a version rewrote files, the rows that were in the table before are no records. Runs on executors.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clickjoin.kernel.arrays import bool_array, number_array, scalar
from clickjoin.kernel.filesystem import open_file
from clickjoin.kernel.parquet_lines import lines_of, type_hints
from clickjoin.kernel.read_lines import aside, read_numbered

if TYPE_CHECKING:
    from clickjoin.model.ids import RecordSpec, TypeHints

VERSION_BITS = 32  # a record's offset is its version, and below that its number in it
_ROWS = 4096
_BYTES = 8 << 20  # of lines that are parsed at once
_TYPE = "_change_type"  # of files of changes (CDF)
_NEW = ("insert", "update_postimage")


class RowFile(NamedTuple):
    """A file of rows: its path below the table, values of partition columns, rows and bytes (0: not known)."""

    path: str
    values: Mapping[str, Any]
    rows: int = 0
    size: int = 0


class TablePiece(NamedTuple):
    """What is read of one version: rows [begin, end) of one file whose first row has number `base` in the version.

    Where the version rewrote files it is all that it added, and `former` are those that it took away; `changes`: the
    files are of changes (CDF). `lost`: why nothing can be read, in a sentence.
    """

    version: int
    files: tuple[RowFile, ...] = ()
    base: int = 0
    begin: int = 0
    end: int = 0
    former: tuple[RowFile, ...] = ()
    changes: bool = False
    lost: str = ""


class TableChunk(NamedTuple):
    """A piece of the table at `root` for one task. `as_json`: columns of text whose JSON becomes part of the record."""

    root: str
    source_partition: str
    piece: TablePiece
    as_json: tuple[str, ...] = ()


def offset_of(version: int, row: int) -> int:
    """The offset of a row of a version."""
    return (version << VERSION_BITS) + row


def read_piece(chunk: TableChunk, spec: RecordSpec) -> Iterator[pa.RecordBatch]:
    """Records of a piece, columns as RECORDS_DDL: good ones, bad ones, and what is lost.

    Errors: OSError of the disk or the store.
    """
    piece = chunk.piece
    if piece.lost:
        yield _lost(chunk, chunk.root, 0, 0, piece.lost)
        return
    moved = _former(chunk)
    if moved is None:
        yield _unclear(chunk)
    base = piece.base
    whole = bool(piece.former or piece.changes)
    for file in piece.files:
        begin, end = (0, file.rows) if whole else (piece.begin, piece.end)
        yield from _of_file(chunk, spec, file, (base, begin, end), moved or Counter())
        base += file.rows


def _of_file(
    chunk: TableChunk, spec: RecordSpec, file: RowFile, part: tuple[int, int, int], moved: Counter[bytes]
) -> Iterator[pa.RecordBatch]:
    base, begin, end = part
    name = f"{chunk.root}/{file.path}"
    first = offset_of(chunk.piece.version, base)
    try:
        for at, lines, hints in _lines(chunk, file, begin, end):
            numbers = np.arange(first + at, first + at + len(lines))
            if moved:
                kept = _not_moved(lines, moved)
                numbers, lines = numbers[kept], [lines[n] for n in kept]
            if lines:
                yield from read_numbered(name, chunk.source_partition, spec, numbers, lines, hints)
    except FileNotFoundError:
        why = f"{name}: was cleaned away before its {end - begin} rows were read; restore it, or read the table again"
        yield _lost(chunk, name, first + begin, end - begin, why)
    except pa.ArrowException as error:
        why = f"{name}: is damaged ({str(error).splitlines()[0][:200]}); put it back whole, and read the table again"
        yield aside(name, chunk.source_partition, first + begin, end - begin, "broken-file", why)


def _lines(chunk: TableChunk, file: RowFile, begin: int, end: int) -> Iterator[tuple[int, list[bytes], TypeHints]]:
    """Rows [begin, end) of a file as lines, some at a time: the number of the first in the file, the lines, and which
    columns hold decimals.
    """
    with open_file(chunk.root, file.path) as opened:
        found = pq.ParquetFile(opened, pre_buffer=False, coerce_int96_timestamp_unit="us")
        hints = type_hints(found.schema_arrow).without_times()
        at = 0
        for group in range(found.num_row_groups):
            rows = found.metadata.row_group(group).num_rows
            if at < end and begin < at + rows:
                for first, lines in _of_group(found, group, at, (begin, end), chunk, file):
                    yield first, lines, hints
            at += rows


def _of_group(
    found: pq.ParquetFile, group: int, at: int, wanted: tuple[int, int], chunk: TableChunk, file: RowFile
) -> Iterator[tuple[int, list[bytes]]]:
    for batch in found.iter_batches(_ROWS, row_groups=[group], use_threads=False):
        low, high = max(wanted[0] - at, 0), min(wanted[1] - at, batch.num_rows)
        if low < high:
            rows = _whole(batch.slice(low, high - low), file.values)
            if _TYPE in rows.schema.names and chunk.piece.changes:
                yield from _of_changes(rows, at + low, chunk)
            else:
                yield from _cut(at + low, lines_of(rows, chunk.as_json))
        at += batch.num_rows


def _whole(batch: pa.RecordBatch, values: Mapping[str, Any]) -> pa.RecordBatch:
    """Rows with the columns that lie in no file, because the table is partitioned by them."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name, value in values.items():
        columns[name] = _constant(value, batch.num_rows)
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _constant(value: Any, count: int) -> pa.Array:
    if isinstance(value, bool):
        return bool_array(np.full(count, value))
    if isinstance(value, int | float):
        return number_array(np.full(count, value), pa.int64() if isinstance(value, int) else pa.float64())
    return pa.nulls(count) if value is None else pa.repeat(scalar(value), count)


def _of_changes(rows: pa.RecordBatch, at: int, chunk: TableChunk) -> Iterator[tuple[int, list[bytes]]]:
    """Those rows of changes that are new, or new states of rows, one after the other."""
    kinds = rows.column(_TYPE).to_pylist()
    left = rows.drop_columns([_TYPE])
    for number, kind in enumerate(kinds):
        if kind in _NEW:
            yield at + number, lines_of(left.slice(number, 1), chunk.as_json)


def _cut(at: int, lines: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """The same in parts that may be parsed at once."""
    held = 0
    begin = 0
    for number, line in enumerate(lines):
        if held and held + len(line) > _BYTES:
            yield at + begin, lines[begin:number]
            begin, held = number, 0
        held += len(line)
    yield at + begin, lines[begin:]


def _former(chunk: TableChunk) -> Counter[bytes] | None:
    """Fingerprints of the rows that a version took away, with how often; None where some of them cannot be read."""
    found: Counter[bytes] = Counter()
    for file in chunk.piece.former:
        try:
            for _, lines, _hints in _lines(chunk, file, 0, 1 << 62):
                found.update(map(_print, lines))
        except (FileNotFoundError, pa.ArrowException):
            return None
    return found


def _not_moved(lines: Sequence[bytes], moved: Counter[bytes]) -> list[int]:
    """Numbers of the lines that are not among the former rows, each of which stands for one."""
    kept = []
    for number, line in enumerate(lines):
        name = _print(line)
        if moved.get(name):
            moved[name] -= 1
        else:
            kept.append(number)
    return kept


def _print(line: bytes) -> bytes:
    """A row's fingerprint, whatever the order of its columns, and whether or not those that are null are there."""
    try:
        row = {name: value for name, value in json.loads(line).items() if value is not None}
        line = json.dumps(row, sort_keys=True).encode()
    except (ValueError, AttributeError, RecursionError):
        pass  # a row that cannot be written as JSON says so, always in the same words
    return hashlib.blake2b(line, digest_size=16).digest()


def _unclear(chunk: TableChunk) -> pa.RecordBatch:
    version, rows = chunk.piece.version, sum(file.rows for file in chunk.piece.files)
    why = (
        f"version {version} rewrote {len(chunk.piece.former)} files that were cleaned away since: which of its "
        f"{rows} rows are new cannot be known. All are read, and those whose ids are known count as repeats"
    )
    return aside(chunk.root, chunk.source_partition, offset_of(version + 1, 0) - 1, 0, "unclear-rewrite", why)


def _lost(chunk: TableChunk, name: str, first: int, rows: int, why: str) -> pa.RecordBatch:
    first = first or offset_of(chunk.piece.version, 0)
    return aside(name, chunk.source_partition, first, rows, "source-lost", why)
