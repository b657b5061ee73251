"""Where the pages of a Parquet file lie, and which times each holds, by its page index, which PyArrow does not read.

Kept in a process for the files that were asked last, since a file never changes. Runs on executors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from clickjoin.kernel import thrift_compact as thrift
from clickjoin.kernel.arrays import Array
from clickjoin.kernel.byte_ranges import ByteRanges
from clickjoin.kernel.data_skipping import EVER, Ends
from clickjoin.kernel.pages import Pages

# Of a row group, on average. Of shorter ones PyArrow reads little beside what is wanted, and footers of many take long.
_LONG, _LARGE = 4_097, 2 << 20  # rows, or bytes
_LONG_ROW = 512  # bytes, unpacked
_TAIL = 1 << 16  # bytes: most footers
_INT32, _INT64, _BYTES, _TEXT, _MICROS = 1, 2, 6, 0, 10  # Parquet's types, and what it converts them to
_LOGICAL = 10  # field of a column's element; where it stands alone, numbers are something else, such as nanoseconds
_KINDS = ((_INT32, None), (_INT64, None), (_INT64, _MICROS), (_BYTES, _TEXT))
_FLAT = (0, 1)  # required, optional: a value for each row
_ASCENDING = bytes([0x15, 2])  # the index's field after its lists of values
_LOCATION = [0x16, 0x15, 0x16, 0]  # heads of a page's offset, bytes and first row, and the end of a location
_KEPT, _FILES = 64 << 20, 32  # bytes, which are counted after so many files
_OF_A_GROUP, _OF_A_COLUMN = 56, 1_000  # bytes, beside those of pages
_OTHERWISE = (ValueError, LookupError, TypeError, OverflowError)  # of a file that is written otherwise


class Column(NamedTuple):
    """A column: its element of the schema, its codec, and where it lies.

    `places`: a row for each group: first byte, first byte of a data page, bytes, then offset and length of the index
    of places and of that of values. `ends`: of each group its least and greatest value, of times.
    """

    element: thrift.Struct
    codec: int
    places: Array
    ends: Array

    @property
    def kind(self) -> tuple[int, int | None]:
        """Parquet's type, and what it is converted to."""
        return self.element[1], self.element.get(6)


class PageIndex:
    """A file's columns by name, the rows of each row group, and the pages of those columns that were asked for.

    `others`: columns of kinds that are not read by pages. Errors: ValueError where the file's own figures do not agree.
    """

    def __init__(self, columns: dict[str, Column], others: set[str], group_rows: Array, unpacked: int) -> None:
        """`unpacked`: bytes of all columns, not compressed."""
        self.columns, self.others, self.group_rows, self._bytes = columns, others, group_rows, unpacked
        self._first_rows = np.cumsum(group_rows) - group_rows
        self._pages: dict[str, Pages] = {}
        self._ends: dict[str, Ends] = {}

    @property
    def size(self) -> int:
        """Bytes, about."""
        columns = len(self.columns) * (_OF_A_COLUMN + _OF_A_GROUP * len(self.group_rows))
        return (
            columns
            + sum(pages.size for pages in list(self._pages.values()))
            + sum(ends.least.nbytes + ends.most.nbytes for ends in list(self._ends.values()))
        )

    @property
    def has_long_rows(self) -> bool:
        """Whether a row takes so many bytes that all of a row group may be more than there is memory."""
        return self._bytes > _LONG_ROW * int(self.group_rows.sum())

    def knows(self, file: ByteRanges, names: Iterable[str]) -> bool:
        """Whether the pages are known of those of some columns that the file has."""
        try:
            self._load(file, sorted((self.columns.keys() & names) - self._pages.keys()))
        except _OTHERWISE:
            return False
        return self.others.isdisjoint(names)

    def pages(self, file: ByteRanges, name: str) -> Pages:
        """The pages of a column."""
        if name not in self._pages:
            self._load(file, [name])
        return self._pages[name]

    def _load(self, file: ByteRanges, names: list[str]) -> None:
        """Have the pages of some columns known."""
        places = [self.columns[name].places[:, 3:5] for name in names]
        held = iter(file.read(np.concatenate(places)) if places else [])
        for name in names:
            parts = [self._pages_of(bytes(next(held)), name, group) for group in range(len(self.group_rows))]
            sizes, rows = (np.concatenate([part[at] for part in parts]) for at in range(2))
            begins, counts = self.columns[name].places[:, 1], [len(part[0]) for part in parts]
            self._pages[name] = Pages(begins, counts, sizes, np.append(rows, self.group_rows.sum()))

    def _pages_of(self, raw: bytes, name: str, group: int) -> tuple[Array, ...]:
        first, data, size = self.columns[name].places[group, :3].tolist()
        count, _, begin = thrift.list_head(raw, 1)
        found = thrift.varints(raw[begin:])[: 7 * count].reshape(count, 7)
        starts, sizes, rows = (found[:, at] >> 1 for at in (1, 3, 5))
        ends = starts + sizes
        is_tiled = starts[0] == data and ends[-1] == first + size and (ends[:-1] == starts[1:]).all()
        follow = rows[0] == 0 and (np.diff(rows, append=self.group_rows[group]) > 0).all()
        if not (is_tiled and follow and (found[:, ::2] == _LOCATION).all()):
            raise ValueError(f"the page index of {name} is not that of its pages")
        return sizes, rows + self._first_rows[group]

    def ends(self, file: ByteRanges, name: str) -> Ends:
        """Least and greatest value of each page of a column of times; of one of nulls alone no time lies between."""
        if name not in self._ends:
            pages, column = self.pages(file, name), self.columns[name]
            held = zip(file.read(column.places[:, 5:7]), column.ends, strict=True)
            parts = [_ends_of(bytes(raw), whole) for raw, whole in held]
            least, most = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
            if len(least) != len(pages):
                raise ValueError(f"the page index of {name} is not that of its pages")
            self._ends[name] = Ends(least, most)
        return self._ends[name]


def _ends_of(raw: bytes, whole: Array) -> tuple[Array, Array]:
    """Of each page of a row group; `whole`: those of all the group.

    Errors: ValueError where they contradict one another. Where pages follow one another in time, each reaches to its
    neighbours', and the outer ones to the group's own: then one damaged end has no page passed over.
    """
    count, _, at = thrift.list_head(raw, 1)
    held = np.frombuffer(raw, np.uint8, count, at) != 1  # true: a page of nulls, without ends
    least, at = _eight_bytes(raw, at + count, held, EVER)
    most, at = _eight_bytes(raw, at, held, -EVER)
    low, high = least[held], most[held]
    if (low > high).any():
        raise ValueError("a page's greatest time is less than its least")
    if len(low) and raw[at : at + 2] == _ASCENDING:
        least[held] = np.minimum(low, np.append(whole[0], high[:-1]))
        most[held] = np.maximum(high, np.append(low[1:], whole[1]))
    return least, most


def _eight_bytes(raw: bytes, at: int, held: Array, otherwise: int) -> tuple[Array, int]:
    """A field that is a list of integers as bytes, some of them empty, and where it ends."""
    count, _, begin = thrift.list_head(raw, at + 1)
    sizes, data = np.where(held, 9, 1), np.frombuffer(raw, np.uint8)
    ends = begin + np.cumsum(sizes)
    first = (ends - sizes)[held]
    if count != len(held) or (data[first] != 8).any():
        raise ValueError("the page index is not one of times")
    found = np.full(count, otherwise, np.int64)
    found[held] = data[first[:, None] + np.arange(1, 9)].view("<i8")[:, 0]
    return found, int(ends[-1])


def page_index(file: ByteRanges, name: str, times: str, more: Iterable[str]) -> PageIndex | None:
    """The pages of an open file of this name; None where it has no page index that fits, or none that is worth it.

    `times`: its column of times; `more`: others that are wanted, of which the file may lack some.
    """
    # Kept at Arrow's module: this one travels to executors by value, and what it kept would travel with it.
    known: dict[tuple[str, int], PageIndex | None] = pa.__dict__.setdefault("_clickjoin_pages", {})
    key = name, file.size()
    if key not in known:
        held = list(known.items()) if len(known) % _FILES == 0 else []  # other threads add to it
        while held and sum(index.size if index else 100 for _, index in held) > _KEPT:
            known.pop(held.pop(0)[0], None)
        known[key] = _understood(file, times)
    index = known.get(key)
    return index if index is not None and index.knows(file, more) else None


def _understood(file: ByteRanges, times: str) -> PageIndex | None:
    try:
        index = _read(file)
        if index is not None and index.columns[times].kind == (_INT64, _MICROS):
            index.ends(file, times)
            return index
    except _OTHERWISE:
        pass  # whatever it is, PyArrow reads it or says what is wrong
    return None


def _read(file: ByteRanges) -> PageIndex | None:
    size = file.size()
    tail = _at(file, max(size - _TAIL, 0), min(size, _TAIL))
    length = int.from_bytes(tail[-8:-4], "little")
    footer = tail[-8 - length : -8] if length + 8 <= len(tail) else _at(file, size - 8 - length, length)
    rows, groups = _counts(footer)
    if not groups or tail[-4:] != b"PAR1" or (rows < groups * _LONG and size < groups * _LARGE):
        return None
    return _of_footer(thrift.struct(footer, 0)[0])


def _at(file: ByteRanges, start: int, size: int) -> bytes:
    return bytes(file.read(np.array([[start, size]]))[0])


def _counts(footer: bytes) -> tuple[int, int]:
    """Rows and row groups: all that is read of a footer of many."""
    _, at = thrift.varint(footer, 1)
    _, at = thrift.elements(footer, at + 1)
    rows, at = thrift.varint(footer, at + 1)
    groups, _, _ = thrift.list_head(footer, at + 1)
    return rows >> 1, groups


def _of_footer(footer: thrift.Struct) -> PageIndex:
    columns, others = dict[str, Column](), set[str]()
    for at, element in enumerate(footer[2][1:]):  # of columns within columns a chunk has other names, and is none
        chunks = [group[1][at] for group in footer[4]]
        places = np.array([_place(chunk) for chunk in chunks], np.int64)
        ends = np.array([_ends_of_chunk(chunk[3]) for chunk in chunks], np.int64)
        column = Column(element, chunks[0][3][4], places, ends)
        is_it = all(chunk[3][3] == [element[4]] and chunk[3][4] == column.codec for chunk in chunks)
        is_plain = 6 in element or _LOGICAL not in element
        if is_it and is_plain and column.kind in _KINDS and element[3] in _FLAT:
            columns[element[4].decode()] = column
        else:
            others.add(element[4].decode())
    unpacked = sum(chunk[3][6] for group in footer[4] for chunk in group[1])
    return PageIndex(columns, others, np.array([group[3] for group in footer[4]], np.int64), unpacked)


def _place(chunk: thrift.Struct) -> tuple[int, ...]:
    meta = chunk[3]
    data = meta[9]
    ends = chunk.get(6, 0), chunk.get(7, 0)  # there are none where a value is very long
    return meta.get(11) or data, data, meta[7], chunk[4], chunk[5], *ends  # a dictionary comes first


def _ends_of_chunk(meta: thrift.Struct) -> tuple[int, int]:
    """Least and greatest value by a chunk's statistics, if it is one of eight bytes and has them."""
    known = meta.get(12, {})
    least, most = known.get(6, b""), known.get(5, b"")
    if len(least) != 8 or len(most) != 8:
        return EVER, -EVER
    return int.from_bytes(least, "little", signed=True), int.from_bytes(most, "little", signed=True)
