"""Where a split of a growing file ends: just after a line's end, within the room that it has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from clickjoin.kernel.file_bytes import read_at
from clickjoin.kernel.packed import BLOCK

SAMPLE = 1 << 16


class Ending(NamedTuple):
    """End of the split, its records if they were counted, and whether finished lines may lie beyond it."""

    end: int
    records: int | None
    more: bool


def cut(fd: int, start: int, size: int, room: int, limit: int | None, must: bool) -> Ending:
    """End of the split [start, …) of a file of `size` bytes that takes at most `room` bytes and `limit` records.

    Without a limit nothing is counted and only the last bytes are read. With `must`, one record is taken even if it
    is longer than the room. The end is `start` where there is no finished line.
    """
    stop = min(start + room, size)
    found = _backward(fd, start, stop) if limit is None else _count(fd, start, stop, limit)
    if found.end > start:
        return Ending(found.end, found.records, found.more or stop < size)
    if must and stop < size:
        end = _forward(fd, stop, size)
        return Ending(end, 1, end < size) if end else Ending(start, 0, False)
    return Ending(start, 0, stop < size)


def _backward(fd: int, start: int, stop: int) -> Ending:
    high = stop
    while high > start:
        low = max(start, high - SAMPLE)
        at = read_at(fd, low, high - low).rfind(b"\n")
        if at >= 0:
            return Ending(low + at + 1, None, False)
        high = low
    return Ending(start, 0, False)


def _forward(fd: int, low: int, size: int) -> int:
    while low < size:
        block = read_at(fd, low, min(BLOCK, size - low))
        at = block.find(b"\n")
        if at >= 0 or not block:
            return low + at + 1 if block else 0
        low += len(block)
    return 0


def _count(fd: int, start: int, stop: int, limit: int) -> Ending:
    end, records = start, 0
    while start < stop:
        block = read_at(fd, start, min(BLOCK, stop - start))
        if not block:
            break
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
        if records + len(ends) >= limit:
            end = start + int(ends[limit - records - 1]) + 1
            return Ending(end, limit, True)
        if len(ends):
            end, records = start + int(ends[-1]) + 1, records + len(ends)
        start += len(block)
    return Ending(end, records, False)
