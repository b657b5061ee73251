"""How a batch's ranges of offsets are spread over tasks. Pure; what it makes is sent to the workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clickjoin.kernel.chunk import dealt, even_parts, tasks_for
from clickjoin.kernel.parse.csv_lines import CsvForm


class Link(NamedTuple):
    """How a cluster is reached: servers, options of librdkafka, and secrets as option and environment variable."""

    servers: str
    group: str
    options: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()


class KafkaChunk(NamedTuple):
    """Offsets [start, end) of a partition, for one task. `name`: what records say of where they were.

    `csv`: how its CSV is written, None for JSON. A chunk that is `lost` (why, in a sentence) is not read.
    """

    name: str
    source_partition: str
    topic: str
    topic_id: str
    partition: int
    start: int
    end: int
    csv: CsvForm | None = None
    lost: str = ""


def spread(chunks: Sequence[KafkaChunk], sizes: Sequence[int], most: int) -> list[list[KafkaChunk]]:
    """At most so many tasks of about equal size, in order; big ranges are cut. `sizes`: bytes, estimated.

    Of a partition a task reads one range at most.
    """
    return [_merged(task) for task in dealt(chunks, sizes, tasks_for(sizes, most), _parts)]


def _parts(chunk: KafkaChunk, size: int, target: int) -> list[tuple[KafkaChunk, int]]:
    pieces = 1 if chunk.lost else min(round(size / target), chunk.end - chunk.start)
    if pieces <= 1:
        return [(chunk, size)]
    edges = even_parts(chunk.start, chunk.end - chunk.start, pieces)
    return [(chunk._replace(start=low, end=high), size // pieces) for low, high in edges]


def _merged(task: Sequence[KafkaChunk]) -> list[KafkaChunk]:
    """Neighbours of one partition as one."""
    merged: list[KafkaChunk] = []
    for chunk in task:
        last = merged[-1] if merged else None
        if last and last.end == chunk.start and last == chunk._replace(start=last.start, end=last.end):
            merged[-1] = last._replace(end=chunk.end)
        else:
            merged.append(chunk)
    return merged
