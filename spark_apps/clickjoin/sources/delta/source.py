"""A Delta table as a source: what each version of it added, on a local disk or on S3, no matter who writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from clickjoin.kernel.chunk import dealt, even_parts
from clickjoin.kernel.table_rows import VERSION_BITS, RowFile, TableChunk, TablePiece, read_piece
from clickjoin.lake.location import location
from clickjoin.lake.table_changes import ChangeLog
from clickjoin.model.errors import SourceError
from clickjoin.model.split import Budget, LastRecord, SourceOffset, SourcePlan, Split
from clickjoin.sources.delta.planning import TableDraft
from clickjoin.sources.delta.state import TablePosition, newest, pieces_of, rows_of
from clickjoin.sources.ranges import RangeSource, is_in
from clickjoin.sources.sample import SAMPLE_RECORDS, Sample, sample_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clickjoin.model.ids import RecordSpec

_FEW = 50_000  # rows: one task reads them


class DeltaSource(RangeSource):
    """The rows of the Delta table at a path. `start`: earliest, latest or a version; `as_json`: columns of JSON text;
    `absent`: the kind of problem that a table is which was never there.

    A record's offset is its version times 2^32, and its number among the rows that the version added.
    """

    each_of = staticmethod(read_piece)

    def __init__(
        self, path: str, *, start: str | int = "earliest", as_json: Sequence[str] = (), tasks: int = 8,
        absent: str = "missing",
    ) -> None:  # fmt: skip
        self._path, self._start, self._as_json, self._tasks = path, start, tuple(as_json), tasks
        self._log, self._absent = ChangeLog(path), absent
        self.taken_back = False  # as of the last plan: a restore has taken away the version that was read last

    def plan(self, offsets: Mapping[str, SourceOffset], budget: Budget) -> SourcePlan:
        """The rows of the versions after the last that was planned, up to the budget."""
        draft = TableDraft(self._path, self._log, self._start, budget, self._absent)
        plan = draft.make(newest(offsets))
        self.taken_back = draft.taken_back
        return plan

    def read_again(self, spark: SparkSession, splits: Sequence[Split], spec: RecordSpec) -> pa.Table:
        """The same as one table. Errors: SourceError where what was moved cannot be known from what is new any more."""
        if any(self._gone(piece.former) for split in splits for piece in pieces_of(split)):
            raise SourceError(f"{self._path}: the former files of a rewritten version were cleaned away")
        return self.read_chunks(self.chunks(splits), spec)

    def lost(self, splits: Sequence[Split]) -> dict[str, str]:
        """Planned splits of which a file, or a version, is gone: partition to reason."""
        found = {}
        for split in splits:
            for piece in pieces_of(split):
                gone = self._gone(piece.files)
                if piece.lost or gone:
                    found[split.partition] = piece.lost or f"{self._path}/{gone[0]} was cleaned away"
        return found

    def resume(self, last: LastRecord, spec: RecordSpec) -> SourceOffset | None:
        """The offset just after a record that has landed: its version and row are in it."""
        facts = self._log.facts(again=True)
        if facts is None or facts.table_id != last.partition:
            return None
        version, row = last.offset >> VERSION_BITS, (last.offset & ((1 << VERSION_BITS) - 1)) + 1
        if (entry := self._log.entry(version)) is None or entry.rewrites or row > sum(f.rows for f in entry.added):
            return None  # of a first reading of the whole table, or gone: it is read again, and repeats drop out
        if not self._is_there(last, entry.added, spec):
            return None  # the table came back older, and went on
        mark = self._log.mark(version - 1) or ""
        return TablePosition(last.partition, 0, version, row, read=version - 1, mark=mark, at=entry.at).to_offset()

    def _is_there(self, last: LastRecord, files: Iterable[RowFile], spec: RecordSpec) -> bool:
        """Whether the row that a record was is that record still; a file that was cleaned away proves nothing."""
        version, row = last.offset >> VERSION_BITS, last.offset & ((1 << VERSION_BITS) - 1)
        base = 0
        for file in files:
            if row < base + file.rows:
                piece = TablePiece(version, (file,), base, row - base, row - base + 1)
                chunk = TableChunk(self._path, last.partition, piece, self._as_json)
                return bool(self._gone((file,))) or is_in(last, self.read_chunks([chunk], spec.of_any()))
            base += file.rows
        return False

    def last_written(self, offsets: Mapping[str, SourceOffset]) -> float:
        """When the newest version that was read was committed, in seconds since 1970; 0 where none was."""
        return max((offset.payload["at"] for offset in offsets.values()), default=0)

    def sample(self, splits: Sequence[Split], spec: RecordSpec, most: int = SAMPLE_RECORDS) -> Sample:
        """A look at up to `most` records of some splits, here and now."""
        rows: list[Mapping[str, object]] = []
        for chunk in self.chunks(splits):
            if len(rows) < most:
                some = read_piece(_first(chunk, most - len(rows)), spec)
                rows += [row for batch in some for row in batch.to_pylist()]
        return sample_of(rows[:most])

    def _gone(self, files: Iterable[RowFile]) -> list[str]:
        """Files that are not there. Errors: SourceError where the table's folder cannot be seen at all."""
        folder = location(self._path)
        gone = [file.path for file in files if folder.stored(file.path) is None]
        if gone:
            self._require_seen()
        return gone

    def _require_seen(self) -> None:
        if not self._log.is_there():
            raise SourceError(f"{self._path}: its log cannot be seen", remedy="Mount the folder, or restore the table")

    def chunks(self, splits: Sequence[Split]) -> list[TableChunk]:
        """Pieces of the splits. See RangeSource. Errors: SourceError where the table cannot be seen at all."""
        if splits:
            self._require_seen()  # what is not there then has been cleaned away, and is not just out of reach
        return [
            TableChunk(self._path, split.partition, piece, self._as_json)
            for split in splits
            for piece in pieces_of(split)
        ]

    def dealt(self, splits: Sequence[Split]) -> list[list[TableChunk]]:
        """At most so many tasks of about equal rows, in order; large files are cut."""
        chunks = self.chunks(splits)
        rows = [rows_of(chunk.piece) for chunk in chunks]
        return dealt(chunks, rows, max(min(self._tasks, -(-sum(rows) // _FEW)), 1), _parts)


def _first(chunk: TableChunk, most: int) -> TableChunk:
    piece = chunk.piece
    if piece.former or piece.changes:
        return chunk
    return chunk._replace(piece=piece._replace(end=min(piece.end, piece.begin + most)))


def _parts(chunk: TableChunk, rows: int, target: int) -> list[tuple[TableChunk, int]]:
    piece: TablePiece = chunk.piece
    if piece.former or piece.changes or piece.lost or rows <= target:
        return [(chunk, rows)]
    edges = even_parts(piece.begin, rows, round(rows / target))
    return [(chunk._replace(piece=piece._replace(begin=low, end=high)), high - low) for low, high in edges]
