"""Growing log files as a source: JSON lines, CSV or Parquet, found by a glob, read by Spark's workers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa

from clickjoin.kernel.chunk import Chunk
from clickjoin.kernel.parse.csv_lines import CsvForm
from clickjoin.kernel.read_lines import SCHEMA, read_chunk
from clickjoin.kernel.types import RecordFn
from clickjoin.model.errors import SourceError
from clickjoin.model.split import Budget, LastRecord, SourceOffset, SourcePlan, Split
from clickjoin.sources.files.allowed_folders import own_fence
from clickjoin.sources.files.locate import locate, lost_reason, packed_size, resume
from clickjoin.sources.files.planning import make_plan
from clickjoin.sources.files.proving import Memory, Prover, belied
from clickjoin.sources.files.state import FilePosition, FileSplit, KnownPositions, proof_of, split_before, splits_of
from clickjoin.sources.port import Source
from clickjoin.sources.ranges import ByteSource, is_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from clickjoin.config import Files
    from clickjoin.kernel.file_bytes import AllowedFolders
    from clickjoin.model.ids import RecordSpec

_UNPACKED = 8  # times as long as packed, for sharing out work
_MOST_HERE = 256 << 20  # bytes of records that a process takes of what was small as it lies packed


class FilesSource(ByteSource):
    """The files that a glob names. `now`: seconds since 1970; `tasks`: how many read a large batch; `fence`: where they
    may lie, if that is not for the pipeline's file alone to say.

    Without `keep` its plans are only looked at: what they would read is not digested, so that they cost little.
    `here`: no executor sees the files, so that this process reads them all.

    A file that is renamed or packed within its folder is followed wherever the glob reaches; but let the glob cover
    the names of rotated files if one may come and be rotated away between two plans.
    """

    def __init__(
        self, source: Files, *, now: Callable[[], float] = time.time, tasks: int = 8,
        fence: AllowedFolders | None = None, keep: bool = True, here: bool = False,
    ) -> None:  # fmt: skip
        self._pattern, self._config, self._fence = source.path, source, fence or own_fence(source.path)
        self._now, self._tasks, self._here = now, tasks, here
        self._keep, self._memory, self._positions = keep, Memory(), KnownPositions()

    def plan(self, offsets: Mapping[str, SourceOffset], budget: Budget) -> SourcePlan:
        """Say what a batch reads next; see Source. An unfinished last line is no backlog.

        Of a .gz, size is that of the packed file. Offsets of state `gone` or `done` may be forgotten once their
        files are deleted for good: should one come back it is read whole.
        """
        known = self._positions.of(offsets)
        plan = make_plan(
            self._pattern, known, budget, self._now(), self._memory,
            keep=self._keep, fence=self._fence, csv=lambda path: csv_form(self._config, path),
        )  # fmt: skip
        return plan.to_source_plan()

    def lost(self, splits: Sequence[Split]) -> dict[str, str]:
        """Planned splits whose bytes are nowhere: generation to reason. Errors: SourceError without its folder."""
        own = splits_of(splits)
        paths = locate(self._pattern, own, self._fence)
        return {split.generation: lost_reason(split) for split, path in zip(own, paths, strict=True) if path is None}

    def rewind(self, offset: SourceOffset, split: Split) -> SourceOffset:
        """Back to where a lost split began: should the file come back, its bytes are read after all."""
        return FilePosition.of(offset).rewound(FileSplit.of(split)).to_offset()

    def resume(self, last: LastRecord, spec: RecordSpec) -> SourceOffset | None:
        """The offset just after a record; None where its file is gone, packed, or holds something else there."""
        position = resume(last, self._fence)
        if position is None:
            return None
        split = split_before(position, last.offset).to_split()
        try:
            is_there = is_in(last, self.read_chunks(self.chunks([split]), spec.of_any()))
        except (OSError, SourceError):
            return None  # it has just been moved or rewritten
        return position.to_offset() if is_there else None

    def read_through(
        self, spark: SparkSession, splits: Sequence[Split], spec: RecordSpec, each: RecordFn, ddl: str
    ) -> DataFrame:
        """What `each` makes of the records; by this process where no executor sees the files. See Source."""
        if self._here:
            return Source.read_through(self, spark, splits, spec, each, ddl)
        return super().read_through(spark, splits, spec, each, ddl)

    def read_here(self, splits: Sequence[Split], spec: RecordSpec) -> pa.Table | None:
        """The same records, read by this process; None where they turn out to be too many bytes for it. See Source."""
        held, size = [], 0
        for batch in (batch for chunk in self.chunks(splits) for batch in read_chunk(chunk, spec)):
            held.append(batch)
            size += batch.nbytes
            if size > _MOST_HERE and not self._here:  # packed tighter than was thought: tasks write as they read
                return None
        return pa.Table.from_batches(held, schema=SCHEMA)

    def size(self, split: Split) -> int:
        """About how many bytes a planned split has, if it is read to its end."""
        own = FileSplit.of(split)
        return own.end - own.start if own.end >= 0 else packed_size(own.path) * _UNPACKED

    def last_written(self, offsets: Mapping[str, SourceOffset]) -> float:
        """The newest time of a file, in seconds since 1970; 0 where there is none."""
        return max((offset.payload["mtime_ns"] / 1e9 for offset in offsets.values()), default=0)

    def rewritten(self, offsets: Sequence[SourceOffset]) -> list[SourceOffset]:
        """Those whose files look as they did at the last look and hold other bytes: all that was read is compared."""
        prover = Prover(self._now(), Random(), self._fence)
        return [offset for offset in offsets if belied(FilePosition.of(offset), prover)]

    def chunks(self, splits: Sequence[Split]) -> list[Chunk]:
        """Bytes of the files where they lie now. See RangeSource."""
        own = splits_of(splits)
        return [
            Chunk(
                path or split.path, split.path, split.generation, split.start, split.end, split.start, split.end,
                proof_of(split), csv_form(self._config, split.path), "" if path else lost_reason(split), self._fence,
            )
            for split, path in zip(own, locate(self._pattern, own, self._fence), strict=True)
        ]  # fmt: skip


def csv_form(source: Files, path: str) -> CsvForm | None:
    """How a file's CSV is written; None if it is read as JSON. By the format that is given, or by the file's name."""
    named = re.search(r"\.csv(\.|$)", path.rsplit("/", 1)[-1])
    is_csv = source.format == "csv" if source.format else bool(named)
    return CsvForm(source.separator, source.columns or (), source.multiline) if is_csv else None
