"""How a batch's splits are spread over tasks. Pure; what it makes is sent to the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from clickjoin.kernel.file_bytes import AllowedFolders, Proof
from clickjoin.kernel.packed import may_be_packed
from clickjoin.kernel.parse.csv_lines import CsvForm
from clickjoin.kernel.remote_file import Signed

SMALL = 4 << 20  # up to here one task reads everything: starting another costs more than it saves
PIECE = 2 << 20  # no chunk of a cut split is smaller


class Chunk(NamedTuple):
    """A part of a split for one task: the records that begin in [begin, stop), of the split [start, end).

    `path` is where it lies now, `name` the path that was planned, which is what records say. `end` -1 is the file's
    end. `csv`: how its CSV is written, None for JSON. A split that is `lost` (why, in a sentence) is not read.
    `remote`: where an object is read.
    """

    path: str
    name: str
    source_partition: str
    start: int
    end: int
    begin: int
    stop: int
    proof: Proof
    csv: CsvForm | None
    lost: str = ""
    fence: AllowedFolders | None = None
    remote: Signed | None = None


def tasks_for(sizes: Sequence[int], most: int) -> int:
    """How many tasks read so many bytes; `most` at most."""
    total = sum(sizes)
    return 1 if total < SMALL else max(min(most, total // PIECE), 1)


def dealt(
    chunks: Sequence[Any], sizes: Sequence[int], count: int, cut: Callable[[Any, int, int], list[tuple[Any, int]]]
) -> list[list[Any]]:
    """At most `count` tasks of about equal size, in order.

    `cut`: the parts of a chunk, and their sizes, by its size and that of a task.
    """
    target = -(-sum(sizes) // count) or 1
    tasks: list[list[Any]] = [[] for _ in range(count)]
    done = 0
    for chunk, size in zip(chunks, sizes, strict=True):
        for part, length in cut(chunk, size, target):
            tasks[min((done + length // 2) // target, count - 1)].append(part)
            done += length
    return [task for task in tasks if task]


def even_parts(start: int, length: int, pieces: int) -> list[tuple[int, int]]:
    """Where each of some pieces of about equal length begins and ends."""
    return list(pairwise(start + length * at // pieces for at in range(pieces + 1)))


def spread(chunks: Sequence[Chunk], sizes: Sequence[int], most: int) -> list[list[Chunk]]:
    """At most so many tasks of about equal size, in order; big splits are cut. `sizes`: bytes, open ends estimated."""
    return dealt(chunks, sizes, tasks_for(sizes, most), _parts)


def _parts(chunk: Chunk, size: int, target: int) -> list[tuple[Chunk, int]]:
    whole = chunk.end < 0 or chunk.lost or may_be_packed(chunk.path) or (chunk.csv and chunk.csv.multiline)
    pieces = 1 if whole else round(size / target)
    if pieces <= 1:
        return [(chunk, size)]
    edges = even_parts(chunk.start, size, pieces)
    return [(chunk._replace(begin=low, stop=high), high - low) for low, high in edges]


class Link(NamedTuple):
    """How a cluster is reached: servers, options of librdkafka, and secrets as option and environment variable."""

    servers: str
    group: str
    options: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()


class KafkaChunk(NamedTuple):
    """Offsets [start, end) of a partition, for one task. `name`: what records say of where they were.

    `csv`: how its CSV is written, None for JSON. `metadata`: what of a message becomes part of its record. A chunk that
    is `lost` (why, in a sentence) is not read.
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
    metadata: tuple[str, ...] = ()


def spread_offsets(chunks: Sequence[KafkaChunk], sizes: Sequence[int], most: int) -> list[list[KafkaChunk]]:
    """At most so many tasks of about equal size, in order; big ranges are cut. `sizes`: bytes, estimated.

    Of a partition a task reads one range at most.
    """
    return [_merged(task) for task in dealt(chunks, sizes, tasks_for(sizes, most), _ranges)]


def _ranges(chunk: KafkaChunk, size: int, target: int) -> list[tuple[KafkaChunk, int]]:
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
