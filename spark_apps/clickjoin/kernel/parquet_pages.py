"""Rows of a Parquet file by their numbers, page by page, where PyArrow reads whole column chunks.

The pages that hold wanted rows are put one after the other, below a footer that is written for them, and PyArrow reads
that as any file. Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clickjoin.kernel.arrays import Array, int64_array
from clickjoin.kernel.byte_ranges import ByteRanges
from clickjoin.kernel.page_index import Column, PageIndex
from clickjoin.kernel.pages import Pages
from clickjoin.kernel.thrift_compact import BINARY, I32, I64, LIST, STRUCT, binary, number, written, written_list

_MAGIC = b"PAR1"
_ENCODINGS = written_list(I32, [number(0), number(3)])  # each page says for itself how it is written


def rows_of(first: Array, end: Array) -> Array:
    """Numbers of all rows of some stretches, each from one on to before another."""
    sizes = end - first
    return np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


class _Asked(NamedTuple):
    """Pages of a column that are wanted: of each its first row, its rows, its group; places of the bytes it takes."""

    column: Column
    first: Array
    counts: Array
    groups: Array
    places: list[tuple[int, int]]

    @classmethod
    def of(cls, column: Column, pages: Pages, rows: Array) -> _Asked:
        """Those that hold some rows, group by group: its dictionary, if it has one, then its pages."""
        edges, starts, sizes = pages.rows, pages.starts, pages.sizes
        wanted = np.flatnonzero(np.diff(np.searchsorted(rows, edges)))
        has_dictionary = (column.places[:, 0] < column.places[:, 1]).any()  # else pages of all can be one group's
        groups, places = pages.groups[wanted] * has_dictionary, list[tuple[int, int]]()
        for group in np.unique(groups).tolist():
            some = wanted[groups == group]
            begin, data = column.places[group, :2].tolist()
            places += [(begin, data - begin)] if data > begin else []
            places += zip(starts[some].tolist(), sizes[some].tolist(), strict=True)
        return cls(column, edges[wanted], edges[wanted + 1] - edges[wanted], groups, places)


def values(file: ByteRanges, index: PageIndex, names: Iterable[str], rows: Array) -> dict[str, pa.ChunkedArray]:
    """Some columns' values in some rows of a file: numbers that are sorted, distinct, one or more."""
    asked = {name: _Asked.of(index.columns[name], index.pages(file, name), rows) for name in names}
    places = [place for one in asked.values() for place in one.places]
    data = iter(file.read(np.array(places, np.int64).reshape(-1, 2)))
    return {name: _values(name, one, list(islice(data, len(one.places))), rows) for name, one in asked.items()}


def _values(name: str, asked: _Asked, data: list[memoryview], rows: Array) -> pa.ChunkedArray:
    found, first, counts = _decoded(asked, data), asked.first, asked.counts
    if len(found) != counts.sum():
        raise pa.ArrowInvalid(f"pages of {name} have {len(found)} values for {counts.sum()} rows")
    page = np.searchsorted(first, rows, "right") - 1
    at = rows - (first - np.cumsum(counts) + counts)[page]
    return found if len(at) == len(found) else found.take(int64_array(at))


def _decoded(asked: _Asked, data: list[memoryview]) -> pa.ChunkedArray:
    """All values of the pages whose bytes these are."""
    column, parts, groups, at = asked.column, list[bytes | memoryview]([_MAGIC]), [], len(_MAGIC)
    left = iter(data)
    for group in np.unique(asked.groups).tolist():
        counts = asked.counts[asked.groups == group]
        begin, first = column.places[group, :2].tolist()
        held = list(islice(left, len(counts) + (first > begin)))
        # One row more than there should be: PyArrow gives what there is, and not only as much as it is asked for.
        size, rows = sum(map(len, held)), int(counts.sum()) + 1
        groups.append((_group(column, (at, at + first - begin, size), rows), rows))
        parts += held
        at += size
    footer = _footer(column, groups)
    whole = b"".join([*parts, footer, len(footer).to_bytes(4, "little"), _MAGIC])
    return pq.ParquetFile(pa.BufferReader(whole), pre_buffer=False).read(use_threads=False).column(0)


def _group(column: Column, place: tuple[int, int, int], rows: int) -> bytes:
    """A row group of one column, as it is written; `place`: where it begins, and where its data does, and its bytes."""
    begin, data, size = place
    path = written_list(BINARY, [binary(column.element[4])])
    fields = [(1, I32, number(column.element[1])), (2, LIST, _ENCODINGS), (3, LIST, path)]
    fields += [(4, I32, number(column.codec)), (5, I64, number(rows)), (6, I64, number(size)), (7, I64, number(size))]
    fields += [(9, I64, number(data))] + ([(11, I64, number(begin))] if data > begin else [])
    chunk = written([(2, I64, number(begin)), (3, STRUCT, written(fields))])
    return written([(1, LIST, written_list(STRUCT, [chunk])), (2, I64, number(size)), (3, I64, number(rows))])


def _footer(column: Column, groups: list[tuple[bytes, int]]) -> bytes:
    element, rows = column.element, sum(rows for _, rows in groups)
    fields = [(field, I32, number(element[field])) for field in (1, 3)] + [(4, BINARY, binary(element[4]))]
    fields += [(6, I32, number(element[6]))] if 6 in element else []
    schema = [written([(4, BINARY, binary(b"rows")), (5, I32, number(1))]), written(fields)]
    held = written_list(STRUCT, [group for group, _ in groups])
    return written(
        [(1, I32, number(1)), (2, LIST, written_list(STRUCT, schema)), (3, I64, number(rows)), (4, LIST, held)]
    )
