"""Where a split of a growing file ends: just after a line's end, within the room that it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from clickjoin.kernel.file_bytes import plain_blocks, read_at
from clickjoin.kernel.packed import BLOCK
from clickjoin.kernel.parse.csv_lines import MOST, QuotedRecords
from clickjoin.kernel.parse.lines import Block, whole_lines
from clickjoin.kernel.remote_file import Handle

SAMPLE = 1 << 16


class Ending(NamedTuple):
    """End of the split, its records if they were counted, and whether finished lines may lie beyond it."""

    end: int
    records: int | None
    more: bool


def cut(fd: Handle, start: int, size: int, room: int, limit: int | None, must: bool, closed: bool) -> Ending:
    """End of the split [start, …) of a file of `size` bytes that takes at most `room` bytes and `limit` records.

    Without a limit nothing is counted and only the last bytes are read. With `must`, one record is taken even if it
    is longer than the room. `closed`: the last line needs no newline. The end is `start` where no line is finished.
    """
    stop = min(start + room, size)
    found = _backward(fd, start, stop) if limit is None else _count(fd, start, stop, limit)
    if closed and stop == size and not found.more and found.end < size:
        return Ending(size, None if limit is None else (found.records or 0) + 1, False)
    if found.end > start:
        return Ending(found.end, found.records, found.more or stop < size)
    if must and stop < size:
        end = _forward(fd, stop, size) or (size if closed else 0)
        return Ending(end, 1, end < size) if end else Ending(start, 0, False)
    return Ending(start, 0, stop < size)


def _backward(fd: Handle, start: int, stop: int) -> Ending:
    high = stop
    while high > start:
        low = max(start, high - SAMPLE)
        at = read_at(fd, low, high - low).rfind(b"\n")
        if at >= 0:
            return Ending(low + at + 1, None, False)
        high = low
    return Ending(start, 0, False)


def _forward(fd: Handle, low: int, size: int) -> int:
    while low < size:
        block = read_at(fd, low, min(BLOCK, size - low))
        at = block.find(b"\n")
        if at >= 0 or not block:
            return low + at + 1 if block else 0
        low += len(block)
    return 0


def _count(fd: Handle, start: int, stop: int, limit: int) -> Ending:
    end, records = start, 0
    while start < stop:
        block = read_at(fd, start, min(BLOCK, stop - start))
        if not block:
            break
        is_end = np.frombuffer(block, np.uint8) == 10
        count = int(np.count_nonzero(is_end))
        if records + count >= limit:
            end = start + int(np.flatnonzero(is_end)[limit - records - 1]) + 1
            return Ending(end, limit, True)
        if count:
            end, records = start + block.rfind(b"\n") + 1, records + count
        start += len(block)
    return Ending(end, records, False)


def cut_records(
    fd: Handle, start: int, size: int, room: int, limit: int | None, must: bool, closed: bool, separator: str, path: str
) -> Ending:
    """The same for CSV whose records go over several lines; all is read, and records are counted.

    `closed`: quotes that are open at the end stay open.
    """
    lines = _finished(fd, start, size, closed, path)
    found = QuotedRecords(separator).blocks(lines, growing=not closed)
    end, records, stop = start, 0, start + room
    for block in found:
        ends = block.offset + (_part_end(block, size if closed else -1) if block.ends is None else block.ends)
        fits = int(np.searchsorted(ends, stop, side="right"))
        fits = fits if limit is None else min(fits, limit - records)
        fits = max(fits, 1) if must and end == start and len(ends) else fits
        end, records = (int(ends[fits - 1]), records + fits) if fits else (end, records)
        if fits < len(ends):
            return Ending(end, records, True)
    return Ending(end, records, False)


def records_in(sample: bytes, separator: str) -> int:
    """How many finished records over several lines some bytes hold."""
    found = QuotedRecords(separator).blocks([Block(0, sample)], growing=True)
    return sum(len(block.ends) for block in found if block.ends is not None)


def _finished(fd: Handle, start: int, size: int, closed: bool, path: str) -> Iterator[Block]:
    """Blocks of whole lines in bytes [start, size), without the beginning of a line at the end unless it is closed."""
    for block in whole_lines(plain_blocks(fd, start, size, path), start, MOST):
        if closed or block.part is not None or block.data.endswith(b"\n"):
            yield block
        elif whole := block.data[: block.data.rfind(b"\n") + 1]:
            yield Block(block.offset, whole)


def _part_end(block: Block, size: int) -> Any:
    """Where a line that came in parts ends, if this is its last part. `size`: where the file ends without newline."""
    is_last = block.data.endswith(b"\n") or block.offset + len(block.data) == size
    return np.array([len(block.data)] if is_last else [], np.int64)
