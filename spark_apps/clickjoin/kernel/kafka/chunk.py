"""How a batch's ranges of offsets are spread over tasks. Pure; what it makes is sent to the workers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from clickjoin.kernel.parse.csv_lines import CsvForm

SMALL = 4 << 20  # bytes: up to here one task reads everything, since starting another costs more than it saves
PIECE = 2 << 20  # no chunk of a cut split is smaller


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


def spread(chunks: Sequence[KafkaChunk], sizes: Sequence[int], most: int) -> list[tuple[KafkaChunk, ...]]:
    """At most so many tasks of about equal size, in order; big ranges are cut. `sizes`: bytes, estimated.

    Of a partition a task reads one range at most.
    """
    total = sum(sizes)
    count = 1 if total < SMALL else max(min(most, total // PIECE), 1)
    target = -(-total // count) or 1
    tasks: list[list[KafkaChunk]] = [[] for _ in range(count)]
    done = 0
    for chunk, size in zip(chunks, sizes, strict=True):
        for part, length in _parts(chunk, size, target):
            tasks[min((done + length // 2) // target, count - 1)].append(part)
            done += length
    return [tuple(_merged(task)) for task in tasks if task]


def _parts(chunk: KafkaChunk, size: int, target: int) -> list[tuple[KafkaChunk, int]]:
    pieces = 1 if chunk.lost else min(round(size / target), chunk.end - chunk.start)
    if pieces <= 1:
        return [(chunk, size)]
    edges = [chunk.start + (chunk.end - chunk.start) * at // pieces for at in range(pieces + 1)]
    return [(chunk._replace(start=low, end=high), size // pieces) for low, high in pairwise(edges)]


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
