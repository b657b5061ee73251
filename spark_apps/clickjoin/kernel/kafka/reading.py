"""What a task does: reads its ranges of offsets and turns messages into records. Runs on executors.

Where a range ends is known by the position alone: control records, aborted transactions and compaction leave gaps, so
that its last message need not have its last offset.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from clickjoin.kernel.kafka.connection import Connection, KafkaAway, NoTopic, is_end, is_final, is_out_of_range
from clickjoin.kernel.kafka.messages import MessageReader, lost_batch
from clickjoin.model.errors import SourceError, SourceMoved

if TYPE_CHECKING:
    import pyarrow as pa

    from clickjoin.kernel.kafka.chunk import KafkaChunk, Link
    from clickjoin.kernel.types import RecordFn
    from clickjoin.model.ids import RecordSpec

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
    return f"retention, or somebody, has deleted the messages before offset {low}; keep them for longer than joins rest"


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
