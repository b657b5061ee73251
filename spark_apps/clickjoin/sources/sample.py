"""A look at some records of a source before anything runs: whether they hold the columns that are needed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickjoin.errors import SourceError
from clickjoin.events import MICROS
from clickjoin.sources.contents import BrokenGzip, is_packed, opened, plain_blocks, unpack
from clickjoin.sources.files import FilesSource
from clickjoin.sources.parsing.csv_lines import HEADER, CsvParser, header_of
from clickjoin.sources.records import read_chunk

if TYPE_CHECKING:
    from clickjoin.config import Files
    from clickjoin.events import RecordSpec
    from clickjoin.sources.base import Slice
    from clickjoin.sources.tasks import Chunk

RECORDS = 1_000
BYTES = 1_000_000


@dataclass(frozen=True)
class Sample:
    """How many records were read and how many are good, the fields that any has, and why most of the bad ones are."""

    read: int
    good: int
    fields: tuple[str, ...]
    reason: str
    detail: str


def sample(source: FilesSource, slices: Sequence[Slice], spec: RecordSpec) -> Sample:
    """Read up to RECORDS records of some slices here and now, without Spark; a file that has just changed is left."""
    read = good = 0
    fields: dict[str, None] = {}
    why: Counter[tuple[str, str]] = Counter()
    for piece in slices:
        for chunk in source._chunks([piece])[0]:
            for row in _rows(chunk, spec, max(RECORDS // len(slices), 1)):
                read += 1
                good += row["reason"] is None
                if row["reason"] is not None:
                    why[(row["reason"], row["detail"])] += 1
                fields |= dict.fromkeys(() if chunk.csv else _keys(row))
            fields |= dict.fromkeys(CsvParser(_header(chunk.path)).names if chunk.csv else ())
    reason, detail = why.most_common(1)[0][0] if why else ("", "")
    return Sample(read, good, tuple(fields), reason, detail)


def first_times(source: FilesSource, slices: Sequence[Slice], spec: RecordSpec) -> dict[str, int | None]:
    """Event time (microseconds) of the first good record of each slice, by path; None where there is none near."""
    found: dict[str, int | None] = {}
    for piece in slices:
        for chunk in source._chunks([piece])[0]:
            times = (row["event_time"] for row in _rows(chunk, spec, RECORDS) if row["reason"] is None)
            first = next(times, None)
            micros = None if first is None else round(first.timestamp() * MICROS)
            known = found.get(chunk.path, micros)
            found[chunk.path] = None if known is None or micros is None else min(known, micros)
    return found


def _rows(chunk: Chunk, spec: RecordSpec, most: int) -> Iterator[Mapping[str, Any]]:
    try:
        for batch in read_chunk(chunk, spec, BYTES):
            rows = batch.slice(0, most).to_pylist()
            yield from rows
            most -= len(rows)
            if most <= 0:
                return
    except (OSError, SourceError):
        return  # it has just been moved or rewritten


def _keys(row: Mapping[str, Any]) -> tuple[str, ...]:
    text = row["payload"] if row["reason"] is None else row["raw"]
    try:
        found = json.loads(text) if text else None
    except ValueError:
        return ()
    return tuple(found) if isinstance(found, dict) else ()


def _header(path: str) -> bytes:
    try:
        with opened(path, None) as fd:
            packed, plain = is_packed(fd, path), min(HEADER + 1, os.fstat(fd).st_size)
            return header_of(unpack(fd) if packed else plain_blocks(fd, 0, plain, path))
    except (OSError, SourceError, BrokenGzip):
        return b""


def csv_header(source: Files, path: str) -> bytes | None:
    """The header line of a CSV file, empty where it cannot be read; None for a file of JSON lines."""
    if not FilesSource(source)._is_csv(path):
        return None
    return _header(path)
