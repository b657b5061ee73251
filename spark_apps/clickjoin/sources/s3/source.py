"""Objects of a bucket as a source: JSON lines, CSV or Parquet, found by a glob over keys, read by ranges.

An object that was written again is another one, by its ETag.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa

from clickjoin.kernel.chunk import Chunk
from clickjoin.kernel.file_bytes import Proof
from clickjoin.kernel.parse.csv_lines import CsvForm
from clickjoin.kernel.read_lines import SCHEMA, read_chunk
from clickjoin.kernel.remote_file import Handle, RemoteFile
from clickjoin.model.errors import ClickjoinError
from clickjoin.model.places import S3
from clickjoin.model.split import Budget, Problem, SourceOffset, SourcePlan, Split
from clickjoin.sources.files.source import csv_form
from clickjoin.sources.ranges import ByteSource
from clickjoin.sources.s3.bucket import Bucket, StoredObject
from clickjoin.sources.s3.listing import Glob
from clickjoin.sources.s3.planning import Kinds, Reads, take
from clickjoin.sources.s3.state import Ledger, ObjectSplit
from clickjoin.sources.s3.waiting import Waiting

if TYPE_CHECKING:
    from clickjoin.config import Files
    from clickjoin.kernel.file_bytes import AllowedFolders
    from clickjoin.model.ids import RecordSpec

_AT_ONCE = 32  # looks at objects
_NO_PROOF = Proof(0, "", 0, 0, "")  # If-Match is one
_CURSOR = "cursor"


class S3Source(ByteSource):
    """The objects that a glob names; see `open_source`. Without `keep` what a store refuses is a problem."""

    def __init__(
        self, source: Files, *, now: Callable[[], float] = time.time, tasks: int = 8,
        fence: AllowedFolders | None = None, keep: bool = True,
    ) -> None:  # fmt: skip
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
        """Say what a batch reads next, by the time of last write; see Source. Errors: ConfigError, StoreBusy."""
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

    def read_chunks(self, chunks: Sequence[Chunk], spec: RecordSpec) -> pa.Table:
        """Their records, read by this process, several objects at a time. See RangeSource."""

        def read(chunk: Chunk) -> list[pa.RecordBatch]:
            return list(read_chunk(chunk, spec))

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return pa.Table.from_batches((batch for some in pool.map(read, chunks) for batch in some), schema=SCHEMA)

    def last_written(self, offsets: Mapping[str, SourceOffset]) -> float:
        """When the newest object was written, in seconds since 1970; 0 where there is none."""
        return float(offsets[_CURSOR].payload["written"]) if _CURSOR in offsets else 0.0

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

    def chunks(self, splits: Sequence[Split]) -> list[Chunk]:
        """Bytes of the objects, each with an address that allows to read it. See RangeSource."""
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

    def _opened(self, found: StoredObject) -> Handle:
        return RemoteFile(self.bucket.signed(found.key, found.etag, found.size), self.bucket.path(found.key))
