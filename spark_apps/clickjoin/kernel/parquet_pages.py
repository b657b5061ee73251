"""Rows of a Parquet file by their numbers, page by page, where PyArrow reads whole column chunks.

The pages that hold wanted rows are put one after the other, below a footer that is written for them, and PyArrow reads
that as any file. Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clickjoin.kernel.arrays import int64_array
from clickjoin.kernel.page_index import Column, PageIndex, Pages
from clickjoin.kernel.thrift_compact import BINARY, I32, I64, LIST, STRUCT, binary, number, written, written_list

_MAGIC = b"PAR1"
_ENCODINGS = written_list(I32, [number(0), number(3)])  # each page says for itself how it is written


def rows_of(first: np.ndarray[Any, Any], end: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers of all rows of some stretches, each from one on to before another."""
    sizes = end - first
    return np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def values(opened: pa.NativeFile, index: PageIndex, name: str, rows: np.ndarray[Any, Any]) -> pa.ChunkedArray:
    """A column's values in some rows of an open file: numbers that are sorted, distinct, one or more."""
    pages = index.pages(opened, name)
    wanted = np.flatnonzero(np.diff(np.searchsorted(rows, pages.rows)))
    found = _read(opened, index.columns[name], pages, wanted)
    first = pages.rows[wanted]
    sizes = pages.rows[wanted + 1] - first
    if len(found) != sizes.sum():
        raise pa.ArrowInvalid(f"pages of {name} have {len(found)} values for {sizes.sum()} rows")
    page = np.searchsorted(first, rows, "right") - 1
    at = rows - (first - np.cumsum(sizes) + sizes)[page]
    return found if len(at) == len(found) else found.take(int64_array(at))


def _read(opened: pa.NativeFile, column: Column, pages: Pages, wanted: np.ndarray[Any, Any]) -> pa.ChunkedArray:
    """All values of some pages of a column."""
    parts, groups, at = [_MAGIC], [], len(_MAGIC)
    has_dictionary = (column.places[:, 0] < column.places[:, 1]).any()  # else pages of all groups can be one group's
    of_group = pages.groups[wanted] * has_dictionary
    for group in np.unique(of_group).tolist():
        some = wanted[of_group == group]
        begin, data = column.places[group, :2].tolist()
        held = [opened.read_at(data - begin, begin)] if data > begin else []
        places = zip(pages.sizes[some].tolist(), pages.starts[some].tolist(), strict=True)
        held += [opened.read_at(size, start) for size, start in places]
        size, rows = sum(map(len, held)), int((pages.rows[some + 1] - pages.rows[some]).sum())
        groups.append((_group(column, (at, at + data - begin, size), rows), rows))
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
