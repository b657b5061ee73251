"""Records of CSV that hold line ends inside quotes: where they end. Runs on executors, and where batches are planned.

A quote opens a field only where the field begins; inside, two quotes are one, and one closes the field, so that a
separator or the line's end follows. A record where something else follows, or that has no end within `MOST` bytes, has
a quote too many: its first line stands alone, and the next line begins a record. So one such quote costs one record,
and where records end depends on nothing but the bytes from the beginning of a record on, however they are cut.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from clickjoin.kernel.parse.lines import BOM, Block, line_ends, whole_lines

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

MOST = 1 << 20  # bytes of a record over several lines
QUOTE = ord('"')


def records_of(blocks: Iterable[bytes], offset: int, separator: str, longest: int = 0) -> Iterator[Block]:
    """Blocks of whole records, from all bytes of some whole records; lines longer than `longest` and MOST in parts."""
    return QuotedRecords(separator).blocks(whole_lines(blocks, offset, max(longest, MOST)))


class QuotedRecords:
    """Finds the ends of records whose fields are separated so."""

    def __init__(self, separator: str) -> None:
        mark, inner = re.escape(separator.encode()), rb'(?:[^"\n]++|"")*+'
        field = rb'(?:"%b"|[^"%b\n][^%b\n]*+|)' % (inner, mark, mark)
        more, opened = rb"(?:%b%b)*+\r?\n?" % (mark, field), rb'(?:%b%b)*+"%b\n?' % (field, mark, inner)
        self._whole, self._opening = re.compile(field + more), re.compile(opened)  # of a line outside of quotes
        self._closing = re.compile(rb'%b"%b' % (inner, more))  # of a line inside
        self._inside = re.compile(rb'%b(?:\n?|"%b%b)' % (inner, mark, opened))

    def blocks(self, lines: Iterable[Block], *, growing: bool = False) -> Iterator[Block]:
        """Blocks of whole records, from blocks of whole lines that begin with a record.

        `growing`: a record at the end whose quotes are open may have more lines to come, and is left out.
        """
        held = Block(0, b"")
        for block in lines:
            if block.part is not None:  # of a line longer than MOST, which no record goes across
                yield from self._block(held, closed=True)
                held = Block(0, b"")
                yield block
                continue
            joined = Block(held.offset, held.data + block.data) if held.data else block
            whole = list(self._block(joined, closed=False))
            yield from whole
            used = sum(len(one.data) for one in whole)
            held = Block(joined.offset + used, joined.data[used:])
        if not growing:
            yield from self._block(held, closed=True)

    def _block(self, block: Block, *, closed: bool) -> Iterator[Block]:
        ends = self._ends(block, closed)
        if len(ends):
            yield Block(block.offset, block.data[: int(ends[-1])], ends=ends)

    def _ends(self, block: Block, closed: bool) -> Ints:
        """Ends of records in a block; `closed`: nothing follows, so that what is open at its end stays so."""
        data = block.data
        ends = line_ends(data)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        if block.offset == 0 and data.startswith(BOM):
            starts[0] = len(BOM)
        quoted = np.unique(
            np.searchsorted(ends, np.flatnonzero(np.frombuffer(data, np.uint8) == QUOTE), side="right")
        ).tolist()
        last = [row for row in quoted if not self._inside.fullmatch(data, starts[row], ends[row])]
        inside, done = np.zeros(len(ends), np.bool_), 0
        for row in quoted:
            if row < done or not self._opens(data, starts[row], ends[row]):
                continue
            at = bisect_left(last, row + 1)
            if at == len(last):
                if not closed and len(data) - starts[row] <= MOST:
                    return ends[:row][~inside[:row]]
            elif ends[last[at]] - starts[row] <= MOST and self._closing.fullmatch(
                data, starts[last[at]], ends[last[at]]
            ):
                inside[row : last[at]], done = True, last[at] + 1
        return ends[~inside]

    def _opens(self, data: bytes, start: int, end: int) -> bool:
        return not self._whole.fullmatch(data, start, end) and bool(self._opening.fullmatch(data, start, end))
