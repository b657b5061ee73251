"""What a task does: reads its ranges of offsets and turns messages into records. Runs on executors.

Where a range ends is known by the position alone: control records, aborted transactions and compaction leave gaps, so
that its last message need not have its last offset. Every message is in one row, good or bad; its value is one record,
whatever line ends it holds. A bad one is kept whole, and its key, headers and time beside it.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import methodcaller
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import int64_array, to_numpy
from clickjoin.kernel.content import framed
from clickjoin.kernel.kafka.connection import Connection, KafkaAway, NoTopic, is_end, is_final, is_out_of_range
from clickjoin.kernel.kafka.metadata import with_metadata
from clickjoin.kernel.parse.lines import REASONS, Block
from clickjoin.kernel.read_lines import SCHEMA, LineReader, bad_batch, lost_batch
from clickjoin.model.errors import SourceError, SourceMoved

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from clickjoin.kernel.chunk import KafkaChunk, Link
    from clickjoin.kernel.types import RecordFn
    from clickjoin.model.ids import RecordSpec

    Ints = npt.NDArray[np.int64]

STALLED = 60.0  # seconds without a message or an end, while brokers are asked
SHORT = 30.0  # seconds that a log may end before what was planned, as after a change of leader
_BYTES, _FEWEST, _MOST = 8 << 20, 50, 20_000  # of messages that are taken at a time
_ERROR = methodcaller("error")
_FEW = 200


def read_chunks(chunks: Sequence[KafkaChunk], spec: RecordSpec, connection: Connection) -> Iterator[pa.RecordBatch]:
    """Records of some chunks, columns as RECORDS_DDL.

    Errors: SourceMoved if the topic is another one (any more); SourceError where no broker answers.
    """
    for chunk in chunks:
        if chunk.lost:
            yield lost_batch(chunk)
    left = [chunk for chunk in chunks if not chunk.lost and chunk.end > chunk.start]
    require_same(connection, left)
    while left:
        turn = {(chunk.topic, chunk.partition): chunk for chunk in reversed(left)}
        yield from _Turn(connection, list(turn.values()), spec).read()
        left = [chunk for chunk in left if chunk not in turn.values()]
    require_same(connection, [chunk for chunk in chunks if not chunk.lost])


def require_same(connection: Connection, chunks: Sequence[KafkaChunk]) -> None:
    """Check that topics are those that were planned. Errors: SourceMoved."""
    for name, planned in sorted({(chunk.topic, chunk.topic_id) for chunk in chunks}):
        try:
            found = connection.topic_id(name)
        except NoTopic:
            found = "none"
        if found != planned:
            raise SourceMoved(f"topic {name} was planned with id {planned}, and has {found} now: it was made again")


@dataclass
class _Read:
    """How far a chunk has been read; `short_since`: since when (monotonic) its log has ended too early."""

    chunk: KafkaChunk
    reader: MessageReader
    at: int
    short_since: float | None = None
    found: list[Any] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, int]:
        return self.chunk.topic, self.chunk.partition


class _Turn:
    """Reads chunks of different partitions side by side."""

    def __init__(self, connection: Connection, chunks: Sequence[KafkaChunk], spec: RecordSpec) -> None:
        self._connection, self._many = connection, 1000
        self._open = {
            read.key: read for chunk in chunks for read in (_Read(chunk, MessageReader(chunk, spec), chunk.start),)
        }
        self._is_alone = len(self._open) == 1  # no other partition is assigned
        self._moved = time.monotonic()

    def read(self) -> Iterator[pa.RecordBatch]:
        """All of them, to their ends."""
        self._assign()
        try:
            while self._open:
                events = self._some()
                faults = [event for event in events if event.error() is not None] if any(map(_ERROR, events)) else []
                yield from self._messages([event for event in events if event.error() is None] if faults else events)
                for event in faults:
                    yield from self._fault(event)
                yield from self._overdue()
        finally:
            self._connection.consumer.unassign()

    def _assign(self) -> None:
        self._connection.assign([(*read.key, read.at) for read in self._open.values()])

    def _some(self) -> list[Any]:
        """What is there, or comes within a moment."""
        consumer = self._connection.consumer
        first = consumer.poll(0.5)
        if first is None:
            if time.monotonic() - self._moved > STALLED:
                raise SourceError(
                    f"{self._names()}: no broker gives its messages: {self._connection.trouble or 'no answer'}"
                )
            return []
        events = [first, *consumer.consume(self._many, 0)]
        some = events[:: len(events) // _FEW + 1]
        mean = sum(map(len, some)) // len(some) + 1
        self._many = min(max(_BYTES // mean, _FEWEST), _MOST)
        return events

    def _names(self) -> str:
        return ", ".join(read.chunk.name for read in self._open.values())

    def _messages(self, messages: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        if messages:
            self._moved = time.monotonic()
        self._deal(messages)
        for read in list(self._open.values()):
            if read.found:
                yield from self._take(read)

    def _deal(self, messages: Sequence[Any]) -> None:
        """Give each message to the chunk that it is of."""
        if self._is_alone:  # to ask a million messages where they are from takes as long as to parse some of them
            for only in self._open.values():
                only.found = list(messages)
            return
        for message in messages:
            if read := self._open.get((message.topic(), message.partition())):
                read.found.append(message)

    def _take(self, read: _Read) -> Iterator[pa.RecordBatch]:
        found, read.found = read.found, []
        behind = found[-1].offset()
        if found[0].offset() < read.at or behind >= read.chunk.end:
            found = [message for message in found if read.at <= message.offset() < read.chunk.end]
        read.at, read.short_since = behind + 1, None
        if read.at >= read.chunk.end:
            self._done(read)
        if found:
            yield from read.reader.read(found)

    def _done(self, read: _Read) -> None:
        del self._open[read.key]
        if self._open:
            self._connection.leave(*read.key)

    def _fault(self, event: Any) -> Iterator[pa.RecordBatch]:
        error, read = event.error(), self._open.get((event.topic(), event.partition()))
        if is_final(error):
            fault = self._connection.fault(event.topic() or self._names(), error)
            raise SourceMoved(str(fault)) if isinstance(fault, NoTopic) else fault
        if read is None:
            return
        if is_end(error):
            self._moved = time.monotonic()
            if event.offset() >= read.chunk.end:
                self._done(read)
            else:
                read.short_since = read.short_since or time.monotonic()
        elif is_out_of_range(error):
            yield from self._out_of_range(read)

    def _out_of_range(self, read: _Read) -> Iterator[pa.RecordBatch]:
        """Retention took the offsets, so what is left is read; or the log is shorter than it was."""
        low, high = self._connection.ends(read.chunk.topic, [read.chunk.partition])[read.chunk.partition]
        if low > read.at:
            yield self._lost(read, min(low, read.chunk.end), taken(low))
        elif high < read.at:
            yield self._lost(read, read.chunk.end, cut(high))
        if self._open:
            self._assign()

    def _overdue(self) -> Iterator[pa.RecordBatch]:
        for read in list(self._open.values()):
            if read.short_since and time.monotonic() - read.short_since > SHORT:
                high = self._connection.ends(read.chunk.topic, [read.chunk.partition])[read.chunk.partition].high
                read.short_since = None
                if high < read.chunk.end:
                    yield self._lost(read, read.chunk.end, cut(high))

    def _lost(self, read: _Read, end: int, why: str) -> pa.RecordBatch:
        batch = lost_batch(read.chunk._replace(start=read.at, end=end, lost=why))
        read.at = end
        if read.at >= read.chunk.end:
            self._done(read)
        return batch


@contextmanager
def _no_collector() -> Iterator[None]:
    """Messages are in no cycle: to look for cycles at every few hundred of them takes a quarter of a task's time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def taken(low: int) -> str:
    """Why offsets below the first that is there are lost."""
    return f"retention, or someone, has deleted the messages before offset {low}; keep them for longer than joins rest"


def cut(high: int) -> str:
    """Why offsets behind a log's end are lost."""
    return f"the log ends at offset {high} now: brokers have lost what was behind it (an unclean election?)"


def reader(work: Sequence[Sequence[KafkaChunk]], spec: RecordSpec, link: Link, each: RecordFn) -> RecordFn:
    """What a task does: `each` to the records of the chunks that its numbers name."""

    def records_of(numbers: Iterator[Any]) -> Iterator[Any]:
        connection = Connection(link)
        try:
            with _no_collector():
                for batch in numbers:
                    for task in batch.column(0).to_pylist():
                        yield from read_chunks(work[task], spec, connection)
        except (NoTopic, KafkaAway) as error:
            raise SourceError(str(error)) from None  # by this name it is known again in the driver
        finally:
            connection.close()

    return lambda numbers: each(records_of(numbers))


def mean_size(connection: Connection, topic: str, partition: int, start: int) -> float | None:
    """Bytes of a message, about, by a few from an offset on; None where there are none just now."""
    connection.assign([(topic, partition, start)])
    first = connection.consumer.poll(2.0)
    some = [] if first is None else [first, *connection.consumer.consume(_FEW, 0)]
    connection.consumer.unassign()
    sizes = [len(message) for message in some if message.error() is None]
    return sum(sizes) / len(sizes) if sizes else None


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
        if wanted := self.chunk.metadata:
            lines = [with_metadata(line, message, wanted) for line, message in zip(lines, messages, strict=True)]
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
        lengths = sizes
        if self.chunk.metadata:
            lengths = np.fromiter((len(value or b"") for value in values), np.int64, len(values))
        offsets, seen = _offsets(messages), np.zeros(len(lines), np.bool_)
        bad: list[tuple[int, str, str]] = []
        for batch in self._lines.read(Block(_BASE, data, None, ends)):
            rows = np.searchsorted(starts, to_numpy(batch.column(_OFFSET)) - _BASE)
            if batch["reason"].null_count:
                seen[rows] = True
                yield _placed(batch, offsets[rows], lengths[rows])
            else:
                bad += _first_parts(batch, rows)
        seen[[row for row, *_ in bad]] = True
        if not self._lines.sieve.quiet:
            # What the parser of lines leaves out as blank.
            nothing = [int(row) for row in np.flatnonzero(~seen) if not lines[row].strip(b" \t\r\n")]
            reasons = ("tombstone" if values[row] is None else "empty-value" for row in nothing)
            bad += [(row, reason, REASONS[reason]) for row, reason in zip(nothing, reasons, strict=True)]
        if bad:
            yield self._bad(messages, values, sorted(bad))
        yield from self._lines.passed_over()

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
                f"{framed(values[row] or b'') or why}; {_rest(messages[row])}",
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
