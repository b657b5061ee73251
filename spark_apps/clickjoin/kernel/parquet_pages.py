"""How long the pages of a Parquet file are once unpacked, as their headers say: PyArrow unpacks each as a whole.

A header is a struct of Thrift's compact protocol: type, bytes unpacked, bytes packed, and more that is skipped here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MOST = 256 << 20  # bytes; pages are of 1 MB, and of 1,024 values where writers look so seldom whether one is full
_READ = (1 << 10, 1 << 16, 1 << 24)  # bytes of a header with its statistics: seldom more than the first
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12


def require_short(file: Any, metadata: Any) -> None:
    """Check the pages of each column whose footer says that they could be longer. Errors: ValueError of one that is."""
    for group in range(metadata.num_row_groups):
        for at in range(metadata.num_columns):
            column = metadata.row_group(group).column(at)
            if column.total_uncompressed_size > MOST:
                _require_short(file, column)


def _require_short(file: Any, column: Any) -> None:
    place = column.dictionary_page_offset or column.data_page_offset
    end = place + column.total_compressed_size
    while place < end:
        unpacked, packed, length = _header(file, place)
        if unpacked > MOST:
            name = column.path_in_schema
            raise ValueError(f"column {name} has a page of {unpacked:,} bytes; at most {MOST:,} are read")
        place += length + packed


def _header(file: Any, place: int) -> tuple[int, int, int]:
    """Bytes unpacked and packed that a page has behind its header, and those of the header. Errors: ValueError."""
    for most in _READ:
        file.seek(place)
        reader = _Compact(file.read(most))
        try:
            found = reader.struct()
            return int(found[2]), int(found[3]), reader.at
        except (IndexError, KeyError):  # cut off, or none
            continue
    raise ValueError(f"no page begins at byte {place}")


class _Compact:
    """Values of the compact protocol, from the start of some bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self._skips: dict[int, Callable[[], object]] = {
            _TRUE: int, _FALSE: int, _BYTE: self._byte, _DOUBLE: lambda: self._pass(8), _STRUCT: self.struct,
            _BINARY: lambda: self._pass(self._number()), _LIST: self._items, _SET: self._items, _MAP: self._pairs,
        }  # fmt: skip

    def struct(self) -> dict[int, int]:
        """Numbers of a struct by field; all else is skipped."""
        found: dict[int, int] = {}
        field = 0
        while (head := self._byte()) != _STOP:
            field = field + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            if kind in self._skips:
                self._skips[kind]()
            else:
                found[field] = self._signed()
        return found

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _pass(self, length: int) -> None:
        self.at += length

    def _number(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 128:
            number, shift = number | (byte & 127) << shift, shift + 7
        return number | byte << shift

    def _signed(self) -> int:
        number = self._number()
        return number >> 1 ^ -(number & 1)

    def _items(self) -> None:
        head = self._byte()
        self._each(head >> 4 if head >> 4 < 15 else self._number(), head & 15)

    def _pairs(self) -> None:
        if count := self._number():
            kinds = self._byte()
            for _ in range(count):
                self._each(1, kinds >> 4)
                self._each(1, kinds & 15)

    def _each(self, count: int, kind: int) -> None:
        for _ in range(count):
            if kind in (_TRUE, _FALSE):
                self._byte()
            else:
                self._skips.get(kind, self._signed)()
