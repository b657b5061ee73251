"""From messages to records: every message is in one row, good or bad. Runs on executors.

A value is one record, whatever line ends it holds. A bad one is kept whole, and its key, headers and time beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import int64_array, to_numpy
from clickjoin.kernel.parse.lines import Block
from clickjoin.kernel.parse.reasons import REASONS
from clickjoin.kernel.read_lines import SCHEMA, LineReader, bad_batch

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.kernel.kafka.chunk import KafkaChunk
    from clickjoin.model.ids import RecordSpec

    Ints = npt.NDArray[np.int64]

_BLOCK = 32 << 20  # bytes of values that are parsed together
_VALUE = methodcaller("value")
_BASE = 1  # where a block begins: at 0 a byte order mark would be taken off, as off a file
_OFFSET, _LENGTH = SCHEMA.get_field_index("offset"), SCHEMA.get_field_index("length")


class MessageReader:
    """Turns the messages of one chunk into records, columns as RECORDS_DDL; `offset` and `length` (bytes) of each."""

    def __init__(self, chunk: KafkaChunk, spec: RecordSpec) -> None:
        csv = chunk.csv and chunk.csv._replace(multiline=True)
        self.chunk = chunk._replace(csv=csv)
        self._lines = LineReader(self.chunk, spec)

    def read(self, messages: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        """Records of some messages: the good ones, then the bad ones."""
        values: list[bytes | None] = list(map(_VALUE, messages))
        lines = [value or b"" for value in values] if None in values else cast("list[bytes]", values)
        whole = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines))) // _BLOCK
        for block in np.unique(whole).tolist():
            rows = slice(*np.searchsorted(whole, [block, block + 1]).tolist())
            yield from self._block(messages[rows], values[rows], lines[rows])

    def _block(
        self, messages: Sequence[Any], values: list[bytes | None], lines: list[bytes]
    ) -> Iterator[pa.RecordBatch]:
        data = b"\n".join(lines) + b"\n"
        if not self.chunk.csv and (data.count(b"\n") != len(lines) or b"\r" in data):
            lines = [_on_one_line(line) for line in lines]
            data = b"\n".join(lines) + b"\n"
        sizes = np.fromiter(map(len, lines), np.int64, len(lines))
        ends = np.cumsum(sizes + 1)
        starts = ends - sizes - 1
        offsets, seen = _offsets(messages), np.zeros(len(lines), np.bool_)
        bad: list[tuple[int, str, str]] = []
        for batch in self._lines.read(Block(_BASE, data, None, ends)):
            rows = np.searchsorted(starts, to_numpy(batch.column(_OFFSET)) - _BASE)
            if batch["reason"].null_count:
                seen[rows] = True
                yield _placed(batch, offsets[rows], sizes[rows])
            else:
                bad += _first_parts(batch, rows)
        seen[[row for row, *_ in bad]] = True
        # What the parser of lines passes over as blank.
        nothing = [(row, "tombstone" if values[row] is None else "empty-value") for row in np.flatnonzero(~seen)]
        bad += [(int(row), reason, REASONS[reason]) for row, reason in nothing]
        if bad:
            yield self._bad(messages, values, sorted(bad))

    def _bad(
        self, messages: Sequence[Any], values: Sequence[bytes | None], bad: Sequence[tuple[int, str, str]]
    ) -> pa.RecordBatch:
        rows = [
            (
                messages[row].offset(),
                len(values[row] or b""),
                values[row] or b"",
                0,
                reason,
                f"{why}; {_rest(messages[row])}",
            )
            for row, reason, why in bad
        ]
        batch = bad_batch(self.chunk, rows)
        null = pa.array([values[row] is None for row, *_ in bad])
        if not pc.any(null).as_py():
            return batch
        raw = pc.if_else(null, pa.scalar(None, pa.binary()), batch["raw"])
        return batch.set_column(SCHEMA.get_field_index("raw"), SCHEMA.field("raw"), raw)


def _on_one_line(value: bytes) -> bytes:
    """A JSON text without line ends, which can only stand between its parts; what is no JSON as it is."""
    if b"\n" not in value and b"\r" not in value:
        return value
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return value
    return value.replace(b"\n", b" ").replace(b"\r", b" ")


def _offsets(messages: Sequence[Any]) -> Ints:
    """Offsets of messages of one partition, which rise; where none is missing, the ends say them all."""
    first, last = messages[0].offset(), messages[-1].offset()
    if last - first == len(messages) - 1:
        return np.arange(first, last + 1)
    return np.fromiter((message.offset() for message in messages), np.int64, len(messages))


def _placed(batch: pa.RecordBatch, offsets: Ints, sizes: Ints) -> pa.RecordBatch:
    columns = batch.columns
    columns[_OFFSET], columns[_LENGTH] = int64_array(offsets), int64_array(sizes)
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _first_parts(batch: pa.RecordBatch, rows: Ints) -> list[tuple[int, str, str]]:
    """Row, reason and detail of bad records; a long one is in several rows, of which the first names it."""
    parts, why = batch["part"].to_pylist(), zip(batch["reason"].to_pylist(), batch["detail"].to_pylist(), strict=True)
    return [(int(row), *each) for row, part, each in zip(rows, parts, why, strict=True) if not part]


def _rest(message: Any) -> str:
    """What a message has beside its value, as JSON; bytes that are no text with their codes."""
    _, time = message.timestamp()
    headers = [[name, _text(value)] for name, value in message.headers() or ()]
    rest = {"key": _text(message.key()), "headers": headers, "timestamp": time}
    return f"message {json.dumps(rest, ensure_ascii=False)}"


def _text(value: bytes | str | None) -> str | None:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def lost_batch(chunk: KafkaChunk) -> pa.RecordBatch:
    """The row of offsets that cannot be read any more; its length is their number."""
    row = (chunk.start, chunk.end - chunk.start, None, None, "source-lost", chunk.lost)
    return bad_batch(chunk, [row])
