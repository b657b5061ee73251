"""The port behind which every kind of source stands: what it has, what a batch shall read, and reading it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from clickjoin.events import RecordSpec


@dataclass(frozen=True)
class Position:
    """How far one generation of one file has been planned. Lengths in bytes (of a .gz unpacked; `size` as on disk).

    `generation` names the content, not the file: it stays the same through a rename. `head_*` is a fingerprint of the
    first bytes, `anchor_*` one of the bytes just before `offset`: together they prove that what lies in a file up
    to `offset` is likely what was read, and `prints` (see `prints.py`) prove it: digests of all of it; of a .gz that is
    done, of the packed file. `state` is `live`, `done` (a .gz read to its end) or `gone` (deleted).

    `mtime_ns` is the age of the oldest unread byte; `written_ns` and `changed_ns` (mtime and ctime) say with `size`
    whether the file is as it was at the last look. `proven`: so many bytes have been compared with `prints` since.
    """

    generation: str
    path: str
    device: int
    inode: int
    offset: int
    size: int
    mtime_ns: int
    head_length: int
    head_hash: str
    anchor_length: int
    anchor_hash: str
    state: str = "live"
    written_ns: int = 0
    changed_ns: int = 0
    proven: int = 0
    prints: str = ""


@dataclass(frozen=True)
class Slice:
    """Bytes [start, end) of one generation: whole records only. `end` -1 means to the end (.gz, which cannot be split).

    `head_*` and `anchor_*` (of the bytes just before `end`) let a reader prove that it reads the planned bytes. In a
    file other than the one planned (`device`, `inode`) they prove too little: there `root` does, the digest of all up
    to `end` (of the packed file, where `end` is -1), as `before` does of all up to `start`.
    """

    generation: str
    path: str
    start: int
    end: int
    head_length: int
    head_hash: str
    anchor_length: int
    anchor_hash: str
    events: int  # estimated from the length of a record, for throttling and progress
    device: int = 0
    inode: int = 0
    before: str = ""
    root: str = ""


@dataclass(frozen=True)
class Budget:
    """How much one batch may read of one stream."""

    max_events: int
    max_bytes: int


@dataclass(frozen=True)
class Problem:
    """Something about a source that people should know.

    `kind`: unreadable | lost-tail | unfinished-line | missing | rewritten.
    """

    kind: str
    path: str
    detail: str
    offset: int = 0
    length: int = 0


@dataclass(frozen=True)
class SourcePlan:
    """What to read next and what is left. `positions`: only those that changed. Backlog: what stays unplanned."""

    slices: tuple[Slice, ...] = ()
    positions: tuple[Position, ...] = ()
    backlog_bytes: int = 0
    backlog_events: int = 0
    problems: tuple[Problem, ...] = field(default=())


# In the message of a reader that finds other bytes than the planned ones: the file was renamed or rewritten just now,
# and another look finds where they are, or that they are lost.
MOVED = "are not the planned ones"

# Columns of `Source.read`, one row a record. `reason` is null for a good record; then `raw` and `detail` are null.
# A bad record keeps its bytes in `raw`, split over several rows with growing `offset` if it is longer than RAW_PART.
# A slice that cannot be read any more is one row with reason `source-lost`, its start and length, and no bytes.
RECORDS_DDL = (
    "event_id STRING, event_time TIMESTAMP, primary_id STRING, primary_time TIMESTAMP, payload STRING, "
    "reason STRING, detail STRING, raw BINARY, part INT, path STRING, generation STRING, `offset` BIGINT, length BIGINT"
)


# What a task does with its record batches, on a worker.
Work = Callable[[Iterator[Any]], Iterator[Any]]


class Nothing:
    """A source that has nothing, for a stream that is not read."""

    def plan(self, positions: Mapping[str, Position], budget: Budget) -> SourcePlan:
        """Nothing to read."""
        return SourcePlan()

    def lost(self, slices: Sequence[Slice]) -> dict[str, str]:
        """Nothing is lost."""
        return {}

    def read(self, spark: SparkSession, slices: Sequence[Slice], spec: RecordSpec) -> DataFrame:
        """No records."""
        return spark.createDataFrame([], RECORDS_DDL)

    def read_through(
        self, spark: SparkSession, slices: Sequence[Slice], spec: RecordSpec, each: Work, ddl: str
    ) -> DataFrame:
        """No records."""
        return spark.createDataFrame([], ddl)

    def read_here(self, slices: Sequence[Slice], spec: RecordSpec) -> pa.Table | None:
        """No records."""
        return None

    def size(self, piece: Slice) -> int:
        """Nothing."""
        return 0

    def reread(self, piece: Slice, start: int, end: int, spec: RecordSpec) -> list[int | None] | None:
        """Nothing can be read."""
        return None

    def rewritten(self, positions: Sequence[Position]) -> list[Position]:
        """Nothing was written."""
        return []


class Source(Protocol):
    """One stream's source of records."""

    def plan(self, positions: Mapping[str, Position], budget: Budget) -> SourcePlan:
        """Say what a batch shall read next, oldest first and fair between files; reads a few bytes of each."""
        ...

    def lost(self, slices: Sequence[Slice]) -> dict[str, str]:
        """Planned slices that cannot be read any more: generation to reason."""
        ...

    def read(self, spark: SparkSession, slices: Sequence[Slice], spec: RecordSpec) -> DataFrame:
        """Records of the slices, in parallel on Spark's workers; columns as RECORDS_DDL."""
        ...

    def read_through(
        self, spark: SparkSession, slices: Sequence[Slice], spec: RecordSpec, each: Work, ddl: str
    ) -> DataFrame:
        """What `each`, on the workers, makes of the record batches that a task reads; columns as `ddl`."""
        ...

    def read_here(self, slices: Sequence[Slice], spec: RecordSpec) -> pa.Table | None:
        """The same records, read by this process; None where only the workers can."""
        ...

    def size(self, piece: Slice) -> int:
        """About how many bytes a planned slice has."""
        ...

    def reread(self, piece: Slice, start: int, end: int, spec: RecordSpec) -> list[int | None] | None:
        """Event times (microseconds; None of a bad record) of what is in bytes [start, end) of a planned slice now.

        None if the bytes cannot be read any more.
        """
        ...

    def rewritten(self, positions: Sequence[Position]) -> list[Position]:
        """Those whose files look as they did at the last look and hold other bytes: all that was read is compared."""
        ...
