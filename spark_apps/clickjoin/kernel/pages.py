"""Where the pages of a column of a Parquet file lie, in little memory. Runs on executors, which need no clickjoin."""

from __future__ import annotations

import numpy as np

from clickjoin.kernel.arrays import Array

_UINT32 = (1 << 32) - 1


class Pages:
    """Pages of a column: where each lies, its bytes, its first row (and one more, the end), its row group.

    Kept as eight bytes a page, since a process keeps those of many files. Errors: OverflowError where a page's bytes or
    rows are too many for that.
    """

    def __init__(self, begins: Array, counts: list[int], sizes: Array, rows: Array) -> None:
        """`begins`, `counts`: of each row group its first page's offset, and how many there are."""
        if max(sizes.max(), rows[-1]) > _UINT32:
            raise OverflowError("a page or a file is too long")
        self._begins, self._counts = begins, counts
        self._sizes, self._rows = sizes.astype(np.uint32), rows.astype(np.uint32)

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def size(self) -> int:
        """Bytes that it takes here."""
        return self._sizes.nbytes + self._rows.nbytes + self._begins.nbytes

    @property
    def sizes(self) -> Array:
        """Bytes of each."""
        return self._sizes.astype(np.int64)

    @property
    def starts(self) -> Array:
        """Offset of each: in a row group they lie one after the other."""
        after = np.cumsum(self._sizes, dtype=np.int64)
        ends = after[np.cumsum(self._counts) - 1]
        shift = self._begins - np.append(0, ends[:-1])
        starts: Array = after - self._sizes + np.repeat(shift, self._counts)
        return starts

    @property
    def rows(self) -> Array:
        """First row of each, and the end."""
        return self._rows.astype(np.int64)

    @property
    def groups(self) -> Array:
        """Row group of each."""
        return np.repeat(np.arange(len(self._counts)), self._counts)
