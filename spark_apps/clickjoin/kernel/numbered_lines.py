"""Lines of JSON that have numbers of their own, as records: for sources whose records are no bytes of a file.

Runs on executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from clickjoin.kernel.arrays import int64_array, text_array, to_numpy
from clickjoin.kernel.chunk import Chunk
from clickjoin.kernel.file_bytes import Proof
from clickjoin.kernel.parse.lines import Block
from clickjoin.kernel.read_lines import LineReader, bad_batch

if TYPE_CHECKING:
    from clickjoin.model.ids import RecordSpec

_NO_PROOF = Proof(0, "", 0, 0, "")


def read_numbered(
    name: str, source_partition: str, spec: RecordSpec, numbers: np.ndarray[Any, Any], lines: Sequence[bytes]
) -> Iterator[pa.RecordBatch]:
    """Records of some lines, each ended by a newline; columns as RECORDS_DDL, `offset` from `numbers`, `length` 1.

    `name`: where they are, for people. A bad record is one row, however long it is.
    """
    starts = np.cumsum([0, *map(len, lines)])
    reader = LineReader(_chunk(name, source_partition, ""), spec)
    for batch in reader.read(Block(0, b"".join(lines))):
        which = np.searchsorted(starts, to_numpy(batch["offset"]), "right") - 1
        yield _numbered(batch, which, numbers, lines)


def _numbered(
    batch: pa.RecordBatch, which: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any], lines: Sequence[bytes]
) -> pa.RecordBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if batch["part"].null_count < batch.num_rows:  # bad ones: the whole line in the first of its parts
        first = [number for number, part in enumerate(columns["part"].to_pylist()) if not part]
        columns = {name: column.take(int64_array(first)) for name, column in columns.items()}
        which = which[first]
        columns["raw"] = text_array([lines[number] for number in which], pa.binary())
    columns["offset"] = int64_array(numbers[which])
    columns["length"] = int64_array(np.ones(len(which), np.int64))
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def aside(name: str, source_partition: str, offset: int, length: int, reason: str, detail: str) -> pa.RecordBatch:
    """A row of records that cannot be read: so many (`length`) from an offset on."""
    lost = reason == "source-lost"
    chunk = _chunk(name, source_partition, detail if lost else "")
    return bad_batch(chunk, [(offset, length, None if lost else b"", None if lost else 0, reason, detail)])


def _chunk(name: str, source_partition: str, lost: str) -> Chunk:
    return Chunk(name, name, source_partition, 0, 0, 0, 0, _NO_PROOF, None, lost)
