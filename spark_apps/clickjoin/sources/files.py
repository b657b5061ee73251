"""Growing log files as a source: JSON lines or CSV with a header, found by a glob, read by Spark's workers."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin import arrays, errors, events
from clickjoin.sources import contents, fence, records, tasks
from clickjoin.sources.base import RECORDS_DDL, Budget, Position, Slice, SourcePlan, Work
from clickjoin.sources.contents import proof_of
from clickjoin.sources.locate import locate, lost_reason, packed_size
from clickjoin.sources.parsing import by_hand, csv_lines, fields, json_lines, lines, moments
from clickjoin.sources.planning import make_plan
from clickjoin.sources.proving import Memory, Prover, belied
from clickjoin.sources.records import read_chunk
from clickjoin.sources.tasks import Chunk, spread
from clickjoin.travel import carry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from clickjoin.config import Files
    from clickjoin.events import RecordSpec
    from clickjoin.sources.fence import Fence

_PARSING = (by_hand, csv_lines, fields, json_lines, lines, moments)
_UNPACKED = 8  # times as long as packed, for sharing out work


class FilesSource:
    """The files that a glob names. `now`: seconds since 1970; `tasks`: how many read a large batch; `fence`: where they
    may lie, if that is not for the pipeline's file alone to say.

    Without `keep` its plans are only looked at: what they would read is not digested, so that they cost little.

    A file that is renamed or packed within its folder is followed wherever the glob reaches; but let the glob cover
    the names of rotated files if one may come and be rotated away between two plans.
    """

    def __init__(
        self,
        source: Files,
        *,
        now: Callable[[], float] = time.time,
        tasks: int = 8,
        fence: Fence | None = None,
        keep: bool = True,
    ) -> None:
        self._pattern, self._format, self._fence = source.path, source.format, fence
        self._now, self._tasks = now, tasks
        self._keep, self._memory = keep, Memory()

    def plan(self, positions: Mapping[str, Position], budget: Budget) -> SourcePlan:
        """Say what a batch shall read next; see base.Source. An unfinished last line is no backlog.

        Of a .gz, size is that of the packed file. Positions of state `gone` or `done` may be forgotten once their
        files are deleted for good: should one come back it is read whole.
        """
        return make_plan(
            self._pattern, positions, budget, self._now(), self._memory, keep=self._keep, fence=self._fence
        )

    def lost(self, slices: Sequence[Slice]) -> dict[str, str]:
        """Planned slices whose bytes are nowhere: generation to reason. Errors: SourceError without its folder."""
        paths = locate(self._pattern, slices, self._fence)
        return {piece.generation: lost_reason(piece) for piece, path in zip(slices, paths, strict=True) if path is None}

    def read(self, spark: SparkSession, slices: Sequence[Slice], spec: RecordSpec) -> DataFrame:
        """Records of the slices, columns as RECORDS_DDL; the same rows each time, in no order. See base.Source."""
        return self.read_through(spark, slices, spec, _unchanged, RECORDS_DDL)

    def read_through(
        self, spark: SparkSession, slices: Sequence[Slice], spec: RecordSpec, each: Work, ddl: str
    ) -> DataFrame:
        """What `each` makes of the records that a worker reads. See base.Source."""
        chunks, sizes = self._chunks(slices)
        work = spread(chunks, sizes, self._tasks)
        carry(sys.modules[__name__], arrays, errors, events, contents, fence, records, tasks, *_PARSING)
        frame = spark.range(0, len(work), 1, len(work))
        return frame.mapInArrow(_reader(work, spec, each), ddl)

    def read_here(self, slices: Sequence[Slice], spec: RecordSpec) -> pa.Table:
        """The same records, read by this process. See base.Source."""
        chunks, _ = self._chunks(slices)
        batches = (batch for chunk in chunks for batch in read_chunk(chunk, spec))
        return pa.Table.from_batches(batches, schema=records.SCHEMA)

    def size(self, piece: Slice) -> int:
        """About how many bytes a planned slice has, if it is read to its end."""
        return piece.end - piece.start if piece.end >= 0 else packed_size(piece.path) * _UNPACKED

    def reread(self, piece: Slice, start: int, end: int, spec: RecordSpec) -> list[int | None] | None:
        """Event times (microseconds; None of a bad record) of the records in bytes [start, end) of a planned slice.

        Read here and now, without Spark. `start` begins a line; end -1: to the file's end. None if the bytes are in no
        file any more. Errors: SourceError if the file changes meanwhile.
        """
        (chunk,), _ = self._chunks([piece])
        if chunk.lost:
            return None
        part = chunk._replace(start=start, end=end, begin=start, stop=end)
        found: list[int | None] = []
        for batch in read_chunk(part, spec):
            real = batch.filter(pc.greater(batch["length"], 0))  # what is broken at the end of a .gz is no record
            found += real["event_time"].cast(pa.int64()).to_pylist()
        return found

    def rewritten(self, positions: Sequence[Position]) -> list[Position]:
        """Those whose files look as they did at the last look and hold other bytes. See base.Source."""
        prover = Prover(self._now(), Random(), self._fence)
        return [position for position in positions if belied(position, prover)]

    def _chunks(self, slices: Sequence[Slice]) -> tuple[list[Chunk], list[int]]:
        chunks, sizes = [], []
        for piece, path in zip(slices, locate(self._pattern, slices, self._fence), strict=True):
            chunks.append(Chunk(
                path or piece.path, piece.path, piece.generation, piece.start, piece.end, piece.start, piece.end,
                proof_of(piece), self._is_csv(piece.path), "" if path else lost_reason(piece), self._fence,
            ))  # fmt: skip
            sizes.append(self.size(piece))
        return chunks, sizes

    def _is_csv(self, path: str) -> bool:
        name = path.rsplit("/", 1)[-1]
        return self._format == "csv" if self._format else bool(re.search(r"\.csv(\.|$)", name))


def _reader(work: Sequence[Sequence[Chunk]], spec: RecordSpec, each: Work) -> Work:
    def records_of(numbers: Iterator[Any]) -> Iterator[Any]:
        for batch in numbers:
            for task in batch.column(0).to_pylist():
                for chunk in work[task]:
                    yield from read_chunk(chunk, spec)

    return lambda numbers: each(records_of(numbers))


def _unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    return batches
