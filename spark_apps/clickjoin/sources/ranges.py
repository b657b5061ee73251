"""What sources have in common whose splits are ranges: they are found, dealt to tasks, and read by the kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from clickjoin.kernel.chunk import Chunk, spread
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.read_lines import SCHEMA, read_chunk, reader
from clickjoin.kernel.types import RecordFn
from clickjoin.model.split import LastRecord, SourceOffset, Split
from clickjoin.sources.completeness import Completeness, Evidence
from clickjoin.sources.files import sample
from clickjoin.sources.port import Source
from clickjoin.sources.sample import SAMPLE_RECORDS, Sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from clickjoin.model.ids import RecordSpec


def is_in(last: LastRecord, records: pa.Table) -> bool:
    """Whether a record that landed is among those that were read where it lay."""
    ids, offsets = records["event_id"].to_pylist(), records["offset"].to_pylist()
    return (last.event_id, last.offset) in zip(ids, offsets, strict=True)


class RangeSource(Source):
    """A source of ranges. It gives `plan`, `chunks`, and `each_of` where no chunk is of bytes.

    `_tasks`: how many read a large batch. `each_of`: the kernel's function that reads a chunk. `needs`: packages that
    executors have to have beside those of every task.
    """

    _tasks: int
    each_of: ClassVar[Any] = staticmethod(read_chunk)  # no method, which would take the source along to executors
    needs: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def chunks(self, splits: Sequence[Split]) -> Sequence[Any]:
        """What there is to read of splits now, and what of them is gone. Errors: SourceError."""
        ...

    def dealt(self, splits: Sequence[Split]) -> list[list[Any]]:
        """The chunks of splits by task, in order, at most `_tasks` of about equal size. Of bytes, unless overridden."""
        return spread(self.chunks(splits), [self.size(split) for split in splits], self._tasks)

    def work_of(self, work: Sequence[Sequence[Any]], spec: RecordSpec, each: RecordFn) -> RecordFn:
        """What a task does: `each` to the records of the chunks that its numbers name."""
        return reader(work, partial(self.each_of, spec=spec), each)

    def read_chunks(self, chunks: Sequence[Any], spec: RecordSpec) -> pa.Table:
        """Their records, read by this process; columns as RECORDS_DDL."""
        batches = (batch for chunk in chunks for batch in self.each_of(chunk, spec))
        return pa.Table.from_batches(batches, schema=SCHEMA)

    def read_here(self, splits: Sequence[Split], spec: RecordSpec) -> pa.Table | None:
        """The records, read by this process. See Source."""
        return self.read_chunks(self.chunks(splits), spec)

    def read_through(
        self, spark: SparkSession, splits: Sequence[Split], spec: RecordSpec, each: RecordFn, ddl: str
    ) -> DataFrame:
        """What `each` makes of the records that the workers read: the same rows each time, in no order. See Source."""
        work = self.dealt(splits)
        frame = spark.range(0, len(work), 1, len(work))
        return frame.mapInArrow(checked(self.work_of(work, spec, each), self.needs), ddl)


class ByteSource(RangeSource):
    """A source of bytes of files or objects, which are looked at and proven alike."""

    @abstractmethod
    def chunks(self, splits: Sequence[Split]) -> Sequence[Chunk]:
        """One for each split."""
        ...

    def rewritten(self, offsets: Sequence[SourceOffset]) -> list[SourceOffset]:
        """Those whose files hold other bytes than were read, and show no change. By default none."""
        return []

    def sample(self, splits: Sequence[Split], spec: RecordSpec, most: int = SAMPLE_RECORDS) -> Sample:
        """A look at some records; a file that has just changed is left. See Source."""
        return sample.sample(self.chunks(splits), spec, most)

    def first_times(self, splits: Sequence[Split], spec: RecordSpec) -> dict[str, int | None]:
        """Event time (microseconds) of the first good record of each split, by the path where it lies now."""
        return sample.first_times(self.chunks(splits), spec)

    def completeness(self, evidence: Evidence) -> Completeness:
        """Whether rows tile the bytes of each split, and what is read still holds them. See Source."""
        from clickjoin.sources.files.completeness import check  # Spark's functions, which few commands need

        return check(self, evidence)

    def reread(self, split: Split, start: int, end: int, spec: RecordSpec) -> list[int | None] | None:
        """Event times (microseconds; None of a bad record) of the records in bytes [start, end) of a planned split.

        Read here and now, without Spark. `start` begins a line; end -1: to the file's end. None if the bytes are
        nowhere any more. Errors: SourceError if the file changes meanwhile.
        """
        (chunk,) = self.chunks([split])
        return sample.times_between(chunk, start, end, spec)
