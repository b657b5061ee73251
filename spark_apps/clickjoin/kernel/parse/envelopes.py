"""Lines that hold their records in an array (CloudTrail's Records, Segment's batch): each element is one.

Rows tile the line: that of the first element begins where the line does, the others where theirs do, and each ends
where the next begins, the last with the line. A line that holds no such array is a record of its own. Runs on
executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from clickjoin.kernel.arrays import int64_array, to_numpy
from clickjoin.kernel.parse.json_scan import elements
from clickjoin.kernel.parse.json_texts import NoJson, unfolded
from clickjoin.kernel.parse.lines import BOM, RAW_PART, Block, split

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.model.ids import RecordSpec

    Ints = npt.NDArray[np.int64]
    Batches = Iterator[pa.RecordBatch]

_BASE = 1  # where a block begins: at 0 a byte order mark would be taken off, as off a file


class _Piece(NamedTuple):
    """Bytes of one record, and of the file the bytes [start, end) that its row stands for."""

    data: bytes
    start: int
    end: int


def each_element(block: Block, spec: RecordSpec, read: Callable[[Block, bool], Iterator[pa.RecordBatch]]) -> Batches:
    """What `read` makes of the elements of the arrays at `spec.records` in a block of whole lines, each as a line.

    It is asked for the elements, and for the lines that hold none. Columns in and out: RECORDS_DDL.
    """
    lines = split(block)
    pieces: dict[bool, list[_Piece]] = {True: [], False: []}
    for start, end in zip(lines.start.tolist(), lines.end.tolist(), strict=True):
        line = block.data[start:end]
        text = line.removeprefix(BOM) if block.offset + start == 0 else line
        found = list(_pieces(text, block.offset + start, len(line), spec))
        pieces[bool(found)] += found or [_Piece(text.strip(), block.offset + start, block.offset + end)]
    for are_elements, some in pieces.items():
        yield from _read_of(some, lambda whole, of=are_elements: read(whole, of))  # type: ignore[misc]


def _read_of(pieces: list[_Piece], read: Callable[[Block], Iterator[pa.RecordBatch]]) -> Batches:
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


def _pieces(text: bytes, offset: int, size: int, spec: RecordSpec) -> Iterator[_Piece]:
    """The elements of a line (`text`, without a byte order mark) that has `size` bytes in the file."""
    if len(text) - text.endswith(b"\n") > spec.max_record:
        return  # however the file was cut into blocks, it is one record that is too long
    whole = _unfolded(text, [keys for keys in spec.texts if keys == spec.records[: len(keys)]])
    found = elements(whole, spec.records)
    mark = size - len(text)
    edges = [0, *(mark + start for start, _ in found[1:]), size]
    for (start, end), (low, high) in zip(found, pairwise(edges), strict=bool(found)):
        yield _Piece(whole[start:end], offset + low, offset + high)


def _unfolded(line: bytes, fields: Sequence[tuple[str, ...]]) -> bytes:
    """A line whose array of records lies in a field's text; as it is where there is none."""
    try:
        return unfolded(line.decode(), fields).encode() if fields else line
    except (UnicodeError, NoJson):
        return line


_DEEPEST = 8


def arrays_of_records(record: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths in an object, and in those inside of it, to arrays of objects alone, one or more."""
    for key, value in record.items() if len(path) < _DEEPEST else ():
        if isinstance(value, list) and value and all(isinstance(element, dict) for element in value):
            yield (*path, key)
        elif isinstance(value, dict):
            yield from arrays_of_records(value, (*path, key))
