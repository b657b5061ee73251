"""What every engine is given to parse, and what it gives back.

No engine says where a line begins in its file, and few read past a bad one: lines are split, and those that no
parser should see are found, by the kernel's own code, whose time counts with the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.engines.given import BEGIN, KEPT, Parsed, chunk_of
from clickjoin.kernel.arrays import bool_array, int64_array, mask
from clickjoin.kernel.file_bytes import opened
from clickjoin.kernel.packed import BLOCK
from clickjoin.kernel.parse.lines import Block, Lines, chunk_blocks, pick, screen, split, whole_lines

DAY, LONGEST = 86_400_000_000, 16 << 20
LOW, HIGH = BEGIN - DAY, BEGIN + 2 * DAY
IDS = {"event_id": "$.event_id", "primary_id": "$.query_id"}
TIMES = {"event_id": "event_time", "primary_id": "primary_time"}
EMBEDDED = "^[^:]+:[0-9]+:([0-9]{1,18})$"
_TIME = pa.timestamp("us", "UTC")
# Text to ids and times of all lines, null where there are none: columns `event_id`, `event_time`, and so on.
Extract = Callable[[pa.Array], pa.Table]


def parsed(file: Path, extract: Extract) -> Parsed:
    """The records of a file, by what an engine finds in the texts of its lines."""
    bad: list[int] = []
    parts = [_beside(lines, extract(lines.text), bad) for lines in _lines(file, bad)]
    return Parsed(pa.concat_tables(parts), sorted(bad))


def read_whole(file: Path, found: pa.Table) -> Parsed:
    """The records of a file, by what an engine's own reader of JSON files made of it. It may have no bad line."""
    bad: list[int] = []
    parts, at = [], 0
    for lines in _lines(file, bad):
        parts.append(_beside(lines, found.slice(at, len(lines.end)), bad))
        at += len(lines.end)
    if at != found.num_rows:
        raise ValueError(f"{found.num_rows} rows of {at} lines")
    return Parsed(pa.concat_tables(parts), sorted(bad))


def _beside(lines: Lines, found: pa.Table, bad: list[int]) -> pa.Table:
    at = int64_array(lines.start + lines.offset)
    more = {"payload": lines.text, "offset": at, "length": int64_array(lines.end - lines.start)}
    for name, column in more.items():
        found = found.append_column(name, column)
    good = _good(found)
    if not good.all():
        bad += found["offset"].filter(bool_array(~good)).to_pylist()
        found = found.filter(bool_array(good))
    for name in TIMES.values():
        found = found.set_column(found.column_names.index(name), name, found[name].cast(_TIME))
    return found.select(KEPT)


def ids(file: Path, find: Callable[[Lines], Mapping[int, str | None]]) -> list[str | None]:
    """The id of each line of a short file, by its number among the lines that parsers see; None where there is none."""
    lines = split(Block(0, file.read_bytes()))
    screened = screen(lines, LONGEST)
    seen = np.array([row for row in range(len(lines.end)) if row not in screened])
    keep = np.isin(np.arange(len(lines.end)), seen)
    found = {int(seen[number]): name for number, name in find(pick(lines, keep)).items()}
    return [found.get(row) for row in range(len(lines.end))]


def ids_of(extract: Extract) -> Callable[[Path], list[str | None]]:
    """The same by an engine."""
    return lambda file: ids(file, lambda lines: dict(enumerate(extract(lines.text)["event_id"].to_pylist())))


def _lines(file: Path, bad: list[int]) -> Iterator[Lines]:
    with opened(str(file), None) as fd:
        start, blocks = chunk_blocks(fd, False, chunk_of(file), 0, BLOCK)
        for block in whole_lines(blocks, start, LONGEST):
            lines = split(block)
            screened = list(screen(lines, LONGEST))
            bad += [int(lines.start[row]) + lines.offset for row in screened]
            if screened:
                keep = np.ones(len(lines.end), np.bool_)
                keep[screened] = False
                lines = pick(lines, keep)
            yield lines


def _good(found: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Where both ids hold a time that can be."""
    good = np.ones(found.num_rows, np.bool_)
    for name in TIMES.values():
        micros = found[name].cast(pa.int64())
        good &= mask(pc.and_(pc.greater_equal(micros, LOW), pc.less_equal(micros, HIGH)))
    return good
