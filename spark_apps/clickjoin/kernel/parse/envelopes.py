"""Lines that hold their records in an array (CloudTrail's Records, Segment's batch): each element is one.

Rows tile the line: that of the first element begins where the line does, the others where theirs do, and each ends
where the next begins, the last with the line. A line that holds no such array is a record of its own. Runs on
executors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from clickjoin.kernel.arrays import int64_array, to_numpy
from clickjoin.kernel.parse.lines import BOM, RAW_PART, Block, split

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_BASE = 1  # where a block begins: at 0 a byte order mark would be taken off, as off a file
_SPACE = " \t\n\r"
_Scan = Callable[[str, int], tuple[Any, int]]  # a value that begins there, and where it ends


class _Piece(NamedTuple):
    """Bytes of one record, and of the file the bytes [start, end) that its row stands for."""

    data: bytes
    start: int
    end: int


def each_element(
    block: Block, path: tuple[str, ...], read: Callable[[Block], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """What `read` makes of the elements of the arrays at `path` in a block of whole lines, each as a line.

    Columns in and out: RECORDS_DDL.
    """
    lines = split(block)
    pieces: list[_Piece] = []
    for start, end in zip(lines.start.tolist(), lines.end.tolist(), strict=True):
        pieces += _pieces(block.data[start:end], block.offset + start, path)
    if not pieces:
        return
    sizes = np.array([len(piece.data) for piece in pieces], np.int64)
    ends = np.cumsum(sizes + 1)
    whole = Block(_BASE, b"\n".join(piece.data for piece in pieces) + b"\n", None, ends)
    starts = ends - sizes - 1 + _BASE
    places = np.array([piece[1:] for piece in pieces], np.int64)
    for batch in read(whole):
        yield _placed(batch, starts, places)


def _placed(batch: pa.RecordBatch, starts: Ints, places: Ints) -> pa.RecordBatch:
    """Records with the offsets and lengths of what they stand for in the file; a long bad one is in parts."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    parts = to_numpy(batch["part"].cast(pa.int64()).fill_null(0))
    which = np.searchsorted(starts, to_numpy(batch["offset"]), "right") - 1
    begin = places[which, 0] + parts * RAW_PART
    is_last = np.append(which[1:] != which[:-1], True)
    length = np.where(is_last, places[which, 1] - begin, RAW_PART)
    columns |= {"offset": int64_array(begin), "length": int64_array(length)}
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _pieces(line: bytes, offset: int, path: tuple[str, ...]) -> Iterator[_Piece]:
    text = line.removeprefix(BOM) if offset == 0 else line
    found = elements(text, path)
    if not found:
        yield _Piece(text.strip(), offset, offset + len(line))
        return
    mark = len(line) - len(text)
    edges = [0, *(mark + start for start, _ in found[1:]), len(line)]
    for (start, end), (low, high) in zip(found, pairwise(edges), strict=True):
        yield _Piece(text[start:end], offset + low, offset + high)


def elements(line: bytes, path: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where the elements of the array at a path lie in a JSON object; empty where there is none, or it is no JSON."""
    text = line.decode("latin-1")  # a character a byte: what JSON is made of is ASCII
    scan = json.JSONDecoder(strict=False).raw_decode  # what is made here travels to no executor
    try:
        at = _skipped(text, 0)
        for key in path:
            at = _member(text, at, key.encode().decode("latin-1"), scan)
        return _elements(text, at, scan)
    except (ValueError, StopIteration, IndexError, RecursionError):
        return []


def _member(text: str, at: int, key: str, scan: _Scan) -> int:
    """Where the value of a key begins in the object that begins here. Errors: ValueError, StopIteration, IndexError."""
    found = -1
    at = _after(text, at, "{")
    while text[at] != "}":
        name, at = scanstring(text, _after(text, at, '"', skip=False), False)
        at = _after(text, _skipped(text, at), ":")
        if name == key and found >= 0:
            raise ValueError(key)  # named twice
        found = at if name == key else found
        at = _next(text, scan(text, at)[1], "}")
    if found < 0:
        raise ValueError(key)
    return found


def _elements(text: str, at: int, scan: _Scan) -> list[tuple[int, int]]:
    found = []
    at = _after(text, at, "[")
    while text[at] != "]":
        end = scan(text, at)[1]
        found.append((at, end))
        at = _next(text, end, "]")
    return found


def _next(text: str, at: int, close: str) -> int:
    """Behind a comma, or at the closing bracket."""
    at = _skipped(text, at)
    return at if text[at] == close else _after(text, at, ",")


def _after(text: str, at: int, mark: str, *, skip: bool = True) -> int:
    if text[at] != mark:
        raise ValueError(mark)
    return _skipped(text, at + 1) if skip else at + 1


def _skipped(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


_DEEPEST = 8


def arrays_of_records(record: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths in an object, and in those inside of it, to arrays of objects alone, one or more."""
    for key, value in record.items() if len(path) < _DEEPEST else ():
        if isinstance(value, list) and value and all(isinstance(element, dict) for element in value):
            yield (*path, key)
        elif isinstance(value, dict):
            yield from arrays_of_records(value, (*path, key))
