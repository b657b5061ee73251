"""The port behind which every kind of source stands: what it has, what a batch reads, and reading it.

A new source derives from `Source` and gives two methods: `plan` and `read_here`. Its payloads (see model.split) are
its own. What it must keep: a split gives the same records each time that it is read, each with an `offset` of its own
in its partition; splits of a partition do not overlap; an offset that a plan returns lies just behind that plan's
split. All other methods have defaults, which say what they assume. `open_source` builds one from a pipeline's file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from clickjoin.kernel.handshake import checked
from clickjoin.kernel.read_lines import unchanged
from clickjoin.kernel.types import RecordFn
from clickjoin.model.errors import SourceError
from clickjoin.model.split import Budget, LastRecord, SourceOffset, SourcePlan, Split
from clickjoin.sources.completeness import Completeness, Evidence, by_reading_again
from clickjoin.sources.sample import SAMPLE_RECORDS, Sample, sample_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from clickjoin.model.ids import RecordSpec


# Columns of `Source.read`, one row a record. `reason` is null for a good record; then `raw` and `detail` are null.
# A bad record keeps its bytes in `raw`, split over several rows with growing `offset` if it is longer than RAW_PART.
# `offset` orders the records of a partition, and is that of no other; `length` is its size in the source's own unit.
# A split that cannot be read any more is one row with reason `source-lost`, its start and length, and no bytes.
RECORDS_DDL = (
    "event_id STRING, event_time TIMESTAMP, primary_id STRING, primary_time TIMESTAMP, payload STRING, "
    "reason STRING, detail STRING, raw BINARY, part INT, path STRING, source_partition STRING, `offset` BIGINT, "
    "length BIGINT"
)


class Source(Protocol):
    """One stream's source of records."""

    @abstractmethod
    def plan(self, offsets: Mapping[str, SourceOffset], budget: Budget) -> SourcePlan:
        """Say what a batch reads next, oldest first and fair between partitions. `offsets`: by partition.

        Cheap: it is asked for every batch, and reads little or nothing of the records.
        """
        ...

    @abstractmethod
    def read_here(self, splits: Sequence[Split], spec: RecordSpec) -> pa.Table | None:
        """Records of the splits, read by this process; columns as RECORDS_DDL. None where only the workers can.

        Errors: SourceError; SourceMoved where another try may find them.
        """
        ...

    def read_through(
        self, spark: SparkSession, splits: Sequence[Split], spec: RecordSpec, each: RecordFn, ddl: str
    ) -> DataFrame:
        """What `each`, on the workers, makes of the record batches that a task reads; columns as `ddl`.

        By default this process reads, and the workers do the rest: enough for sources of small batches.
        """
        records = self.read_here(splits, spec)
        if records is None:
            raise SourceError("this source reads neither here nor on the workers")
        return spark.createDataFrame(records, RECORDS_DDL).mapInArrow(checked(each), ddl)

    def read(self, spark: SparkSession, splits: Sequence[Split], spec: RecordSpec) -> DataFrame:
        """Records of the splits, in no order; columns as RECORDS_DDL."""
        return self.read_through(spark, splits, spec, unchanged, RECORDS_DDL)

    def read_again(self, spark: SparkSession, splits: Sequence[Split], spec: RecordSpec) -> pa.Table:
        """The same as one Arrow table, no matter who reads."""
        records = self.read_here(splits, spec)
        return self.read(spark, splits, spec).toArrow() if records is None else records

    def size(self, split: Split) -> int:
        """About how many bytes a planned split has."""
        return split.bytes

    def lost(self, splits: Sequence[Split]) -> dict[str, str]:
        """Planned splits that cannot be read any more: partition to reason.

        By default none: what was planned stays readable until its batch is settled.
        """
        return {}

    def rewind(self, offset: SourceOffset, split: Split) -> SourceOffset:
        """What a partition's offset goes back to once a split of it is lost, so that it is read should it come back.

        Pure. By default the offset stays: what is lost does not come back.
        """
        return offset

    def resume(self, last: LastRecord, spec: RecordSpec) -> SourceOffset | None:
        """The offset just after a record that has landed, for a journal that was lost; None where that is not known.

        What lies in its place is read, for another log of that name has the same place. By default not: the partition
        is read from its beginning, and what is read twice drops out as repeats.
        """
        return None

    def completeness(self, evidence: Evidence) -> Completeness:
        """Whether every record of planned splits is in a row, once.

        By default splits are read again and compared, as far as they still can be; the rest is said to be unproven.
        """
        return by_reading_again(self, evidence)

    def first_times(self, splits: Sequence[Split], spec: RecordSpec) -> dict[str, int | None]:
        """Event time (microseconds) of the first good record of each split, by path; None where there is none near.

        By default the least of all splits of a path.
        """
        found: dict[str, int | None] = {}
        for split in splits:
            records = self.read_here([split], spec)
            times = [] if records is None else records["event_time"].cast(pa.int64()).drop_null().to_pylist()
            known = found.get(split.path)
            found[split.path] = min(times if known is None else [*times, known], default=None)
        return found

    def last_written(self, offsets: Mapping[str, SourceOffset]) -> float:
        """When something was last written of what these offsets have been planned of, in seconds since 1970.

        By default in the future: a source that does not know is never taken to be at rest.
        """
        return inf

    def sample(self, splits: Sequence[Split], spec: RecordSpec, most: int = SAMPLE_RECORDS) -> Sample:
        """A look at up to `most` records of some splits, here and now."""
        records = self.read_here(splits, spec)
        rows = [] if records is None else records.slice(0, most).to_pylist()
        return sample_of(rows)


class Nothing(Source):
    """A source that has nothing, for a stream that is not read."""

    def plan(self, offsets: Mapping[str, SourceOffset], budget: Budget) -> SourcePlan:
        """Nothing to read."""
        return SourcePlan()

    def read_here(self, splits: Sequence[Split], spec: RecordSpec) -> pa.Table | None:
        """No records."""
        return None

    def read_through(
        self, spark: SparkSession, splits: Sequence[Split], spec: RecordSpec, each: RecordFn, ddl: str
    ) -> DataFrame:
        """No records."""
        return spark.createDataFrame([], ddl)
