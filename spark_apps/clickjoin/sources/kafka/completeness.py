"""Whether every message of planned offsets is in a row, once: what is there still is read again and compared.

A row whose message is not there any more is no fault: retention and compaction take messages that were read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from clickjoin.kernel.parse.lines import taken_of
from clickjoin.model.errors import SourceError
from clickjoin.model.split import PlannedSplit, Split
from clickjoin.sources.completeness import (
    NO_ROW,
    OVERREAD,
    UNPROVEN,
    UNREAD,
    Completeness,
    Evidence,
    Fault,
    row_offsets,
    unproven_notes,
)
from clickjoin.sources.kafka.state import Range

if TYPE_CHECKING:
    from clickjoin.kernel.chunk import KafkaChunk
    from clickjoin.model.ids import RecordSpec

_MUCH, _GONE = "too much to be read again", "retention or compaction has taken some of its messages"
_AT_A_TIME = 64 << 20  # bytes


class Messages(Protocol):
    """A source that can read offsets again."""

    def chunks(self, splits: Sequence[Split]) -> list[KafkaChunk]:
        """What there is to read of splits, and what is gone."""
        ...

    def read_chunks(self, chunks: Sequence[KafkaChunk], spec: RecordSpec) -> pa.Table:
        """Their records."""
        ...


def check(source: Messages, evidence: Evidence) -> Completeness:
    """Compare rows with offsets that were planned, and with messages, newest batches first. Errors: SourceError."""
    rows, _ = row_offsets(evidence)
    faults: list[Fault] = []
    sound = [planned for planned in evidence.planned if not planned.lost]
    for planned in sound:
        faults += _overread(planned, rows.get(planned.key, Counter()))
    for some in _portions(sound, evidence.most):
        faults += _again(source, evidence, some, rows)
    beyond = _beyond(sound, evidence.most)
    faults += [Fault(UNPROVEN, planned, 1, _MUCH, _where(planned)) for planned in beyond]
    return Completeness(faults, unproven_notes(faults, "ranges of offsets"))


def _where(planned: PlannedSplit) -> dict[str, int]:
    part = Range.of(planned.split)
    return {"from": part.start, "to": part.end}


def _overread(planned: PlannedSplit, rows: Mapping[int, int]) -> Iterator[Fault]:
    """Rows that are there twice, or of offsets that were not planned."""
    part = Range.of(planned.split)
    twice = sum(rows.values()) - len(rows)
    outside = sum(not part.start <= offset < part.end for offset in rows)
    if twice:
        yield Fault(OVERREAD, planned, twice, "two rows hold the same message", _where(planned))
    if outside:
        yield Fault(OVERREAD, planned, outside, "rows of offsets that were not planned", _where(planned))


def _newest(planned: Sequence[PlannedSplit], most: float) -> tuple[list[PlannedSplit], list[PlannedSplit]]:
    """Splits, newest first, that together have so many bytes; and the others."""
    within: list[PlannedSplit] = []
    others: list[PlannedSplit] = []
    for one in sorted(planned, key=lambda one: -one.planned):
        most -= one.split.bytes
        (within if most >= 0 else others).append(one)
    return within, others


def _beyond(planned: Sequence[PlannedSplit], most: float) -> list[PlannedSplit]:
    return _newest(planned, most)[1]


def _portions(planned: Sequence[PlannedSplit], most: float) -> Iterator[list[PlannedSplit]]:
    held: list[PlannedSplit] = []
    size = 0
    for one in _newest(planned, most)[0]:
        held.append(one)
        size += one.split.bytes
        if size > _AT_A_TIME:
            yield held
            held, size = [], 0
    if held:
        yield held


def _again(
    source: Messages, evidence: Evidence, planned: Sequence[PlannedSplit], rows: Mapping[Any, Mapping[int, int]]
) -> list[Fault]:
    """Read splits again, and compare."""
    spec = evidence.spec(max(one.planned for one in planned))
    spec = spec.without_limits() if spec.where else spec
    try:
        chunks = source.chunks([one.split for one in planned])
        there, _ = taken_of(source.read_chunks(_joined([chunk for chunk in chunks if not chunk.lost]), spec))
    except SourceError as error:
        return [Fault(UNPROVEN, one, 1, f"it cannot be read now: {error}", _where(one)) for one in planned]
    found = _by_partition(there)
    gone = {(chunk.source_partition, chunk.start) for chunk in chunks if chunk.lost}
    faults = []
    for one in planned:
        part, landed = Range.of(one.split), rows.get(one.key, {})
        times = {at: time for at, time in found[str(part.place)].items() if part.start <= at < part.end}
        missing = evidence.without_row(one, times, landed)
        if missing:
            faults.append(Fault(UNREAD, one, missing, NO_ROW, _where(one)))
        if (str(part.place), part.start) in gone:
            faults.append(Fault(UNPROVEN, one, 1, _GONE, _where(one)))
    return faults


def _by_partition(records: pa.Table) -> dict[str, dict[int, int | None]]:
    found: dict[str, dict[int, int | None]] = defaultdict(dict)
    columns = (records["source_partition"], records["offset"], records["event_time"].cast(pa.int64()))
    for partition, offset, time in zip(*(column.to_pylist() for column in columns), strict=True):
        found[partition][offset] = time
    return found


def _joined(chunks: Sequence[KafkaChunk]) -> list[KafkaChunk]:
    """Neighbours as one, so that few ranges are asked for."""
    joined: list[KafkaChunk] = []
    for chunk in sorted(chunks, key=lambda chunk: (chunk.source_partition, chunk.start)):
        last = joined[-1] if joined else None
        if last and last.source_partition == chunk.source_partition and last.end >= chunk.start:
            joined[-1] = last._replace(end=max(last.end, chunk.end))
        else:
            joined.append(chunk)
    return joined
