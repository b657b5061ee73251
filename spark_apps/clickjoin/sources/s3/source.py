"""Objects of a bucket as a source: JSON lines, CSV or Parquet, found by a glob over keys, read by ranges."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from clickjoin.kernel.chunk import Chunk, spread
from clickjoin.kernel.file_bytes import Proof
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.parse.csv_lines import CsvForm
from clickjoin.kernel.read_lines import SCHEMA, read_chunk, reader
from clickjoin.kernel.remote_file import Handle, RemoteFile
from clickjoin.kernel.types import RecordFn
from clickjoin.model.errors import ClickjoinError
from clickjoin.model.places import S3
from clickjoin.model.split import Budget, Problem, SourceOffset, SourcePlan, Split
from clickjoin.sources.completeness import Completeness, Evidence
from clickjoin.sources.files import sample
from clickjoin.sources.files.source import csv_form
from clickjoin.sources.port import Source
from clickjoin.sources.s3.bucket import Bucket, Found
from clickjoin.sources.s3.estimate import Kinds
from clickjoin.sources.s3.listing import Glob
from clickjoin.sources.s3.planning import Reads, take
from clickjoin.sources.s3.state import Ledger, ObjectSplit
from clickjoin.sources.s3.waiting import Waiting
from clickjoin.sources.sample import SAMPLE_RECORDS, Sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from clickjoin.config import Files
    from clickjoin.kernel.file_bytes import AllowedFolders
    from clickjoin.model.ids import RecordSpec

_AT_ONCE = 32  # looks at objects
_NO_PROOF = Proof(0, "", 0, 0, "")  # If-Match is one
_CURSOR = "cursor"


class S3Source(Source):
    """The objects that a glob names; see `open_source`. Without `keep` what a store refuses is a problem."""

    def __init__(
        self,
        source: Files,
        *,
        now: Callable[[], float] = time.time,
        tasks: int = 8,
        fence: AllowedFolders | None = None,
        keep: bool = True,
    ) -> None:
        if fence:
            fence.require_on_s3(source.path)
        name, _, key = source.path.removeprefix(S3).partition("/")
        self.bucket, self._config = Bucket(source.path), source
        self._tasks, self._keep, self._kinds = tasks, keep, Kinds()
        self._ledger = Ledger({})
        self._waiting = Waiting(self.bucket, name, Glob.of(key), source, now)
        self._fresh: set[str] = set()
        self._verdicts: dict[str, str] = {}
        self._reads = Reads(name, self._form, self._opened)

    def plan(self, offsets: Mapping[str, SourceOffset], budget: Budget) -> SourcePlan:
        """Say what a batch shall read next, by the time of last write; see Source. Errors: ConfigError, StoreBusy."""
        if not self._ledger.is_of(offsets):
            self._ledger = Ledger(offsets)
        try:
            return self._plan(budget)
        except ClickjoinError as error:
            if self._keep:
                raise
            return SourcePlan(problems=(Problem("unreadable", self._config.path, str(error)),))

    def _plan(self, budget: Budget) -> SourcePlan:
        ledger, waiting = self._ledger, self._waiting
        waiting.look(ledger)
        cursor = ledger.cursor
        parts = [part for part in cursor.parts if not waiting.replaced(part.found)]
        taken = take(parts, waiting.objects.values(), budget, self._kinds, self._reads)
        waiting.drop(taken.gone)
        taken.problems += waiting.problems(ledger, parts)
        splits = tuple(split.to_split() for split in taken.splits)
        self._fresh = {split.partition for split in splits}
        offsets: list[SourceOffset] = []
        if splits or len(taken.parts) != len(cursor.parts):
            after = waiting.cursor(cursor, taken.left, tuple(taken.parts))
            offsets = ledger.after(self.bucket.name, taken.begun, after)
        more = waiting.beyond
        return SourcePlan(
            splits, tuple(offsets), taken.backlog_bytes + more.bytes, round(taken.backlog_events + more.bytes / 200),
            tuple(taken.problems),
        )  # fmt: skip

    def lost(self, splits: Sequence[Split]) -> dict[str, str]:
        """Planned splits whose objects are gone or were written again: partition to reason.

        What was planned a moment ago is not looked at again: who reads it finds out, and the batch is tried again.
        """
        trusted = {split.partition for split in splits} & self._fresh
        self._fresh -= trusted
        self._verdicts = dict.fromkeys(trusted, "") | self._looked([s for s in splits if s.partition not in trusted])
        return {name: why for name, why in self._verdicts.items() if why}

    def read_through(
        self, spark: SparkSession, splits: Sequence[Split], spec: RecordSpec, each: RecordFn, ddl: str
    ) -> DataFrame:
        """What `each` makes of the records that a worker reads: the same rows each time, in no order. See Source."""
        work = spread(self._chunks(splits), [split.bytes for split in splits], self._tasks)
        frame = spark.range(0, len(work), 1, len(work))
        return frame.mapInArrow(checked(reader(work, partial(read_chunk, spec=spec), each)), ddl)

    def read_here(self, splits: Sequence[Split], spec: RecordSpec) -> pa.Table:
        """The same records, read by this process, several objects at a time. See Source."""

        def read(chunk: Chunk) -> list[pa.RecordBatch]:
            return list(read_chunk(chunk, spec))

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = pool.map(read, self._chunks(splits))
            return pa.Table.from_batches([batch for some in found for batch in some], schema=SCHEMA)

    def last_written(self, offsets: Mapping[str, SourceOffset]) -> float:
        """When the newest object was written, in seconds since 1970; 0 where there is none."""
        return float(offsets[_CURSOR].payload["written"]) if _CURSOR in offsets else 0.0

    def sample(self, splits: Sequence[Split], spec: RecordSpec, most: int = SAMPLE_RECORDS) -> Sample:
        """A look at some records; an object that has just changed is left. See Source."""
        return sample.sample(self._chunks(splits), spec, most)

    def first_times(self, splits: Sequence[Split], spec: RecordSpec) -> dict[str, int | None]:
        """Event time (microseconds) of the first good record of each split, by path."""
        return sample.first_times(self._chunks(splits), spec)

    def completeness(self, evidence: Evidence) -> Completeness:
        """Whether rows tile the bytes of each split; what they do not is read again. See Source."""
        from clickjoin.sources.files.completeness import check  # Spark's functions, which few commands need

        return check(self, evidence)

    def reread(self, split: Split, start: int, end: int, spec: RecordSpec) -> list[int | None] | None:
        """Event times (microseconds; None of a bad record) of the records in bytes [start, end) of a planned split.

        `start` begins a line; end -1: to the object's end. None if the object is not there any more.
        """
        (chunk,) = self._chunks([split])
        return sample.times_between(chunk, start, end, spec)

    def rewritten(self, offsets: Sequence[SourceOffset]) -> list[SourceOffset]:
        """None: an object that was written again is another one, by its ETag."""
        return []

    def _looked(self, splits: Sequence[Split]) -> dict[str, str]:
        """Why each of these cannot be read any more; empty where it can."""

        def why(split: Split) -> str:
            one = ObjectSplit.of(split)
            now = self.bucket.now(one.key)
            if now and now[0] == one.etag:
                return ""
            bytes_ = f"bytes {one.start} to {one.end}" if one.end >= 0 else f"the bytes from {one.start}"
            if now is None:
                return f"{bytes_} of {one.path} are gone: the object was deleted; put it back, and it is read"
            return f"{bytes_} of {one.path} are gone: the object was written again, and what it holds now is read"

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return dict(zip([split.partition for split in splits], pool.map(why, splits), strict=True))

    def _chunks(self, splits: Sequence[Split]) -> list[Chunk]:
        known = self._verdicts | dict.fromkeys(self._fresh, "")
        known |= self._looked([split for split in splits if split.partition not in known])
        return [self._chunk(ObjectSplit.of(split), known[split.partition]) for split in splits]

    def _chunk(self, split: ObjectSplit, lost: str) -> Chunk:
        signed = self.bucket.signed(split.key, split.etag, split.size, whole=split.end < 0)
        return Chunk(
            split.path, split.path, split.partition, split.start, split.end, split.start, split.end, _NO_PROOF,
            self._form(split.path), lost, None, signed,
        )  # fmt: skip

    def _form(self, path: str) -> CsvForm | None:
        return csv_form(self._config, path)

    def _opened(self, found: Found) -> Handle:
        return RemoteFile(self.bucket.signed(found.key, found.etag, found.size), self.bucket.path(found.key))
