"""Bytes of a file by their places, in few reads: what lies close together is read with what lies between.

Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from clickjoin.kernel.arrays import Array

_GAP = 128 << 10  # bytes that an object store sends in less time than it takes to answer another request
_AT_ONCE = 16  # requests


class ByteRanges:
    """An open file that is read by ranges; `remote`: each read is a request, and they are sent side by side."""

    def __init__(self, opened: pa.NativeFile, *, remote: bool = False) -> None:
        self._opened, self._remote = opened, remote

    def size(self) -> int:
        """Bytes in all."""
        return int(self._opened.size())

    def read(self, places: Array) -> list[memoryview]:
        """The bytes of some places (rows: offset, length) that do not overlap, one for each, in their order."""
        if not len(places):
            return []
        starts, sizes = places[:, 0], places[:, 1]
        order = np.argsort(starts)
        ends = (starts + sizes)[order]
        far = np.flatnonzero(starts[order][1:] - ends[:-1] > (_GAP if self._remote else 0)) + 1
        first, last = np.append(0, far), np.append(far, len(order)) - 1
        begins = starts[order][first]
        blocks = self._blocks(begins.tolist(), (ends[last] - begins).tolist())
        block = np.empty(len(order), np.int64)
        block[order] = np.repeat(np.arange(len(first)), last - first + 1)
        at = (starts - begins[block]).tolist()
        return [
            blocks[number][begin : begin + size]
            for number, begin, size in zip(block.tolist(), at, sizes.tolist(), strict=True)
        ]

    def _blocks(self, begins: list[int], sizes: list[int]) -> list[memoryview]:
        if self._remote and len(begins) > 1:
            with ThreadPoolExecutor(min(len(begins), _AT_ONCE)) as pool:
                return list(pool.map(self._block, begins, sizes))
        return list(map(self._block, begins, sizes))

    def _block(self, begin: int, size: int) -> memoryview:
        return memoryview(self._opened.read_at(size, begin))
