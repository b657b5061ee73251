"""What a batch reads of a Delta table: the rows of the versions after the last, apart from those that were moved.

An entry that only adds files brings new rows. One that takes files away as well has rewritten them: all that it added
is one piece, whose reader leaves out the rows that were there before. Files that only lie otherwise (dataChange false)
bring nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from clickjoin.kernel.table_rows import RowFile, TablePiece
from clickjoin.lake.table_changes import FILLER, Entry, Facts
from clickjoin.model.split import Budget, Problem, SourcePlan
from clickjoin.sources.delta.state import TablePosition, absent_text, rows_of, split_of

MOST_FILES = 500  # of one batch: the journal names each
AHEAD = 1_000  # versions beyond a batch that are counted as backlog
_QUIET = 100  # versions without a row, after which the offset alone is worth a batch
_REPLACED = "another table lies there"
_ROLLED_BACK = "the table is an older state of itself, or has another past"


class Log(Protocol):
    """What this needs of a table's log; see lake.table_changes."""

    def facts(self, *, again: bool = False) -> Facts | None:
        """The table as it is."""
        ...

    def next_after(self, version: int) -> int | None:
        """The first version from this one on."""
        ...

    def entry(self, version: int) -> Entry | None:
        """What a version did."""
        ...

    def mark(self, version: int) -> str | None:
        """The fingerprint of an entry as it is now."""
        ...

    def forget(self) -> None:
        """Read all again."""
        ...

    def files_at(self, version: int) -> tuple[RowFile, ...] | None:
        """All files of a version."""
        ...


@dataclass
class TableDraft:
    """A plan in the making for the table at a path. `start`: earliest, latest or a version, where nothing was read.

    `absent`: the kind of problem that it is if the table was never there.
    """

    path: str
    log: Log
    start: str | int
    budget: Budget
    absent: str = "missing"
    pieces: list[tuple[TablePosition, TablePiece]] = field(default_factory=list)
    passed: dict[str, TablePosition] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    backlog_rows: int = 0
    backlog_bytes: int = 0
    rows: int = 0
    bytes: int = 0
    files: int = 0
    full: bool = False
    cleaned: bool = True
    taken_back: bool = False

    def make(self, known: TablePosition | None) -> SourcePlan:
        """The plan after a position. Errors: SourceError for a table that cannot be read."""
        facts = self.log.facts()
        position = None if facts is None else self._begin(facts) if known is None else self._same(known)
        if position is None:
            self.log.forget()
            kind = self.absent if known is None else "missing"
            return SourcePlan(problems=(Problem(kind, self.path, absent_text(kind, self.path)),))
        reached = self._walk(position)
        self._ahead(reached)
        return self._plan(known, position, reached)

    def _begin(self, facts: Facts, life: int = 0, partition: str = "") -> TablePosition:
        name, whole = partition or facts.table_id, self.start == "earliest" or life > 0
        version = facts.version if whole else facts.version + 1 if self.start == "latest" else int(self.start)
        read = version if whole else version - 1
        return TablePosition(name, life, version, whole=whole, read=read, mark=self.log.mark(read) or "")

    def _same(self, known: TablePosition) -> TablePosition | None:
        """The position, if what lies there is what was read; else the beginning of another incarnation, or nothing."""
        mark = self.log.mark(known.read) if known.read >= 0 else None
        self.cleaned = mark is None  # else no later entry can have been cleaned away
        self.taken_back = mark == FILLER
        if mark in (known.mark, FILLER):
            return known
        facts = self.log.facts(again=True)
        if facts is None:
            return None
        if mark is None and facts.version >= known.read and facts.table_id == known.partition.rstrip("+"):
            return known  # the log was cleaned up to here
        self.log.forget()
        same = facts.table_id == known.partition.rstrip("+")
        why = _ROLLED_BACK if same else _REPLACED
        detail = (
            f"{self.path}: {why} since version {known.read} was read. It is read again from its beginning: rows whose "
            "ids are known count as repeats. What had been added after that version and is gone cannot be known"
        )
        self.problems.append(Problem("rewritten", self.path, detail))
        self.passed[known.partition] = known
        return self._begin(facts, known.life + 1, f"{known.partition}+" if same else facts.table_id)

    def _walk(self, position: TablePosition) -> TablePosition:
        """Take up versions one after another; the position behind the last, or in it where the budget is spent."""
        if position.whole:
            position = self._take_whole(position)
        while not self.full:
            entry = self.log.entry(position.version)
            if entry is None:
                following = self.log.next_after(position.version) if self.cleaned else None
                if following is None:
                    break
                position = self._gap(position, following)
                continue
            self.cleaned = False
            if entry.table_id and entry.table_id != position.partition.rstrip("+"):
                position = self._replaced(position, entry)
            position = self._take(position, entry)
        return position

    def _gap(self, position: TablePosition, following: int) -> TablePosition:
        """The position behind entries that are gone."""
        why = (
            f"{self.path}: versions {position.version} to {following - 1} were cleaned out of the table's log before "
            "they were read; what they added is not known. Read the table again to take it up"
        )
        self._add(position, TablePiece(position.version, lost=why))
        self.problems.append(Problem("lost-tail", self.path, why))
        return replace(position, version=following, row=0)

    def _replaced(self, position: TablePosition, entry: Entry) -> TablePosition:
        """The table was made again by this version, in the same log."""
        detail = f"{self.path}: version {entry.version} replaced the table; its rows are read as those of another one"
        self.problems.append(Problem("rewritten", self.path, detail))
        self.passed[position.partition] = position
        return TablePosition(entry.table_id, position.life + 1, entry.version, at=position.at)

    def _take_whole(self, position: TablePosition) -> TablePosition:
        files = self.log.files_at(position.version)
        if files is None:
            why = (
                f"{self.path}: version {position.version}, of which all was to be read first, was cleaned out of the "
                f"log before its rows from {position.row} on were read. Read the table again to take them up"
            )
            self._add(position, TablePiece(position.version, lost=why))
            self.problems.append(Problem("lost-tail", self.path, why))
            return replace(position, version=position.version + 1, row=0, whole=False)
        row = self._take_files(position, position.version, files, position.row)
        if row is not None:
            return replace(position, row=row)
        entry = self.log.entry(position.version)
        return position.after(position.version, entry.mark if entry else "", entry.at if entry else 0)

    def _take(self, position: TablePosition, entry: Entry) -> TablePosition:
        files = entry.changes or entry.added
        rows = sum(file.rows for file in files)
        if entry.rewrites and self._room() < rows and self.pieces:
            self.full = True
            return position
        if entry.removed:
            self._tell(entry)
        if entry.rewrites:
            former = () if entry.changes else entry.removed
            self._add(position, TablePiece(entry.version, files, 0, 0, rows, former, bool(entry.changes)))
        else:
            row = self._take_files(position, entry.version, entry.added, position.row)
            if row is not None:
                return replace(position, row=row)
        return position.after(entry.version, entry.mark, entry.at)

    def _tell(self, entry: Entry) -> None:
        what = "rewrote" if entry.added else "deleted"
        detail = (
            f"{self.path}: version {entry.version} ({entry.operation or 'unknown operation'}) {what} "
            f"{len(entry.removed)} files: rows that it moved are no new ones, those that it changed count as repeats, "
            "and of those that it deleted the copies here stay"
        )
        self.problems.append(Problem("rewritten", self.path, detail))

    def _take_files(self, position: TablePosition, version: int, files: tuple[RowFile, ...], row: int) -> int | None:
        """Take rows of files from number `row` on; the number to go on from, or None where all were taken."""
        base = 0
        for file in files:
            begin, base = max(row - base, 0), base + file.rows
            if begin >= file.rows:
                continue
            room = self._room()
            if room <= 0:
                self.full = True
                return base - file.rows + begin
            end = min(begin + room, file.rows)
            self._add(position, TablePiece(version, (file,), base - file.rows, begin, end))
            if end < file.rows:
                self.full = True
                return base - file.rows + end
        return None

    def _room(self) -> int:
        """Rows that there is room for."""
        if self.files >= MOST_FILES or (self.bytes >= self.budget.max_bytes and self.pieces):
            return 0
        return self.budget.max_events - self.rows

    def _add(self, position: TablePosition, piece: TablePiece) -> None:
        self.pieces.append((position, piece))
        self.rows += rows_of(piece)
        self.files += len(piece.files) + len(piece.former)
        self.bytes += split_of(position, "", (piece,)).bytes

    def _ahead(self, position: TablePosition) -> None:
        """Count what stays unplanned, as far as it is worth looking."""
        files = self.log.files_at(position.version) or () if position.whole else ()
        rows, size = sum(file.rows for file in files), sum(file.size for file in files)
        version = position.version + 1 if position.whole else position.version
        while self.full and version < position.version + AHEAD and (entry := self.log.entry(version)):
            rows += sum(file.rows for file in entry.changes or entry.added)
            size += sum(file.size for file in entry.changes or entry.added)
            version += 1
        self.backlog_rows = max(rows - position.row, 0)
        self.backlog_bytes = size * self.backlog_rows // rows if rows else 0

    def _plan(self, known: TablePosition | None, before: TablePosition, after: TablePosition) -> SourcePlan:
        by_partition: dict[str, list[TablePiece]] = {}
        positions = {position.partition: position for position, _ in self.pieces}
        for position, piece in self.pieces:
            by_partition.setdefault(position.partition, []).append(piece)
        splits = tuple(split_of(positions[name], self.path, some) for name, some in by_partition.items())
        quiet = after.version - before.version <= _QUIET
        worth = known is None or before != known or self.pieces or self.problems or not quiet
        moved = {**self.passed, after.partition: after} if worth else {}
        offsets = tuple(position.to_offset() for position in moved.values() if position != known)
        return SourcePlan(splits, offsets, self.backlog_bytes, self.backlog_rows, tuple(self.problems))
