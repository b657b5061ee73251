"""A look at some records of files before anything runs, and at few of them later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.file_bytes import opened_chunk, plain_blocks
from clickjoin.kernel.packed import BrokenFile, is_packed, unpack
from clickjoin.kernel.parse.csv_lines import HEADER, CsvParser, header_of
from clickjoin.kernel.read_lines import read_chunk
from clickjoin.kernel.remote_file import Handle, length_of
from clickjoin.model.errors import SourceError
from clickjoin.model.ids import MICROS
from clickjoin.sources.sample import SAMPLE_BYTES, SAMPLE_RECORDS, Sample, sample_of

if TYPE_CHECKING:
    from clickjoin.kernel.chunk import Chunk
    from clickjoin.model.ids import RecordSpec

_MOST_BYTES = 64 << 20  # of a file's records are looked at, whatever it was packed to


def sample(chunks: Sequence[Chunk], spec: RecordSpec, most: int) -> Sample:
    """Read up to `most` records of some chunks here and now; a file that has just changed is left."""
    rows: list[Mapping[str, Any]] = []
    headers: dict[str, None] = {}
    unread: dict[str, None] = {}
    for chunk in chunks:
        found = list(_rows(chunk, spec, max(most // len(chunks), 1)))
        if chunk.csv:
            parser = CsvParser(b"" if chunk.csv.columns else _header(chunk), chunk.csv)
            headers |= dict.fromkeys(parser.names)
            unread |= {f"{chunk.name}: {parser.wrong}": None} if parser.swallowed else {}
        rows += [row | {"raw": None} for row in found] if chunk.csv else found
    return replace(sample_of(rows, tuple(headers)), unread=tuple(unread))


def first_times(chunks: Sequence[Chunk], spec: RecordSpec) -> dict[str, int | None]:
    """Event time (microseconds) of the first good record of each chunk, by path; None where there is none near."""
    found: dict[str, int | None] = {}
    for chunk in chunks:
        times = (row["event_time"] for row in _rows(chunk, spec, SAMPLE_RECORDS) if row["reason"] is None)
        first = next(times, None)
        micros = None if first is None else round(first.timestamp() * MICROS)
        known = found.get(chunk.path, micros)
        found[chunk.path] = None if known is None or micros is None else min(known, micros)
    return found


def times_between(chunk: Chunk, start: int, end: int, spec: RecordSpec) -> list[int | None] | None:
    """Event times (microseconds; None of a bad record) in bytes [start, end) of a chunk; None where it is lost."""
    if chunk.lost:
        return None
    part = chunk._replace(start=start, end=end, begin=start, stop=end)
    found: list[int | None] = []
    for batch in read_chunk(part, spec):
        # What is broken at the end of a .gz is no record, nor is what says how many were passed over.
        real = batch.filter(pc.greater(batch["length"], 0))
        found += real["event_time"].cast(pa.int64()).to_pylist()
    return found


def _rows(chunk: Chunk, spec: RecordSpec, most: int) -> Iterator[dict[str, Any]]:
    size = 0
    try:
        for batch in read_chunk(chunk, spec, SAMPLE_BYTES):
            size += batch.nbytes
            whole = batch.filter(pc.equal(pc.fill_null(batch["part"].cast(pa.int64()), 0), 0))
            rows = whole.slice(0, most).to_pylist()  # of a record that is too long its first part
            yield from rows
            most -= len(rows)
            if most <= 0 or size > _MOST_BYTES:
                return
    except (OSError, SourceError):
        return  # it has just been moved or rewritten


def header(fd: Handle, path: str) -> bytes:
    """The header line of a CSV file. Errors: OSError, SourceError, BrokenFile."""
    packed, plain = is_packed(fd, path), min(HEADER + 1, length_of(fd))
    return header_of(unpack(fd) if packed else plain_blocks(fd, 0, plain, path))


def _header(chunk: Chunk) -> bytes:
    try:
        with opened_chunk(chunk) as fd:
            return header(fd, chunk.path)
    except (OSError, SourceError, BrokenFile):
        return b""
