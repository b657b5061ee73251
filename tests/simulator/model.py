"""The model of Delta: tables as lists of versions, and the rules by which a commit is taken, skipped or refused.

Kept apart from who commits: Spark's rules and delta-rs's differ, and both are here. What the rules are is checked
against real Delta by one table of interleavings (tests/matrix.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

RowDict = dict[str, Any]
Pause = Callable[[str, str], None]


class Refused(Exception):
    """A commit that Delta refuses; the text is what real Delta says."""


@dataclass(eq=False)
class File:
    """A data file: its rows and partition values. Never changed once written."""

    path: str
    values: Mapping[str, Any]
    rows: tuple[RowDict, ...]
    memo: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def bounds(self, column: str) -> tuple[Any, Any]:
        """Least and greatest value, as a log keeps them: of a time, the milliseconds alone."""
        found = self.memo.get(column)
        if found is None:
            known = [row[column] for row in self.rows if row.get(column) is not None]
            found = (_kept(min(known)), _kept(max(known))) if known else (None, None)
            self.memo[column] = found
        return found


def _kept(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    return value


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One version of a table."""

    version: int
    files: Mapping[str, File]
    txns: Mapping[str, int]
    memo: dict[str, Any] = field(default_factory=dict)

    def rows(self) -> list[RowDict]:
        """All rows."""
        found: list[RowDict] | None = self.memo.get("rows")
        if found is None:
            found = self.memo["rows"] = [row for file in self.files.values() for row in file.rows]
        return found


@dataclass(frozen=True, eq=False)
class Commit:
    """What one commit did. `packs`: it changed no row."""

    adds: tuple[File, ...] = ()
    removes: frozenset[str] = frozenset()
    txns: Mapping[str, int] = field(default_factory=dict)
    packs: bool = False
    metadata: bool = False


@dataclass(eq=False)
class Reading:
    """What a transaction has read: its snapshot, files, partitions that it asked for, and applications."""

    snapshot: Snapshot
    predicates: list[Callable[[Mapping[str, Any]], bool]] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    apps: set[str] = field(default_factory=set)


class Table:
    """A table: its columns (name to type), partition columns, columns with statistics, and every version."""

    def __init__(self, path: str, columns: dict[str, str], partitions: Sequence[str], statistics: Sequence[str]):
        self.path = path
        self.name = path.rsplit("/", 1)[-1]
        self.columns = columns
        self.partitions = tuple(partitions)
        self.statistics = tuple(statistics)
        self.commits: list[Commit] = [Commit(metadata=True)]
        self.snapshots: list[Snapshot] = [Snapshot(0, {}, {})]

    def fork(self) -> Table:
        """A copy that can go its own way."""
        made = Table(self.path, dict(self.columns), self.partitions, self.statistics)
        made.commits, made.snapshots = list(self.commits), list(self.snapshots)
        return made

    @property
    def newest(self) -> Snapshot:
        """The newest version."""
        return self.snapshots[-1]

    def add(self, commit: Commit) -> Snapshot:
        """Put a commit at the end, unasked."""
        old = self.newest
        files = old.files
        if commit.adds or commit.removes:
            files = {path: file for path, file in old.files.items() if path not in commit.removes}
            files |= {file.path: file for file in commit.adds}
        txns = {**old.txns, **commit.txns} if commit.txns else old.txns
        self.commits.append(commit)
        self.snapshots.append(Snapshot(old.version + 1, files, txns))
        return self.newest


class Lake:
    """All tables, and the hooks of whoever steers: `pause` before each read and commit, `seen` after each commit."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.files: dict[str, File] = {}
        self.number = 0
        self.forced = False  # a protection taken away: conflicts are not looked for
        self.pause: Pause = lambda what, table: None
        self.seen: Callable[[Table, Commit], None] = lambda table, commit: None

    def fork(self) -> Lake:
        """A copy that can go its own way; files are shared, for they never change."""
        made = Lake()
        made.tables = {path: table.fork() for path, table in self.tables.items()}
        made.files, made.number = dict(self.files), self.number
        return made

    def table(self, path: str) -> Table | None:
        """The table at a path."""
        return self.tables.get(path.rstrip("/"))

    def look(self, table: Table) -> Snapshot:
        """The newest version, read now."""
        self.pause("read", table.name)
        return table.newest

    def write(self, table: Table, rows: Iterable[RowDict]) -> tuple[File, ...]:
        """Rows as new files, one a partition; not in the table before they are committed."""
        parts: dict[tuple[Any, ...], list[RowDict]] = {}
        names = table.partitions
        for row in rows:
            parts.setdefault(tuple(row[name] for name in names), []).append(row)
        made = []
        for values, held in parts.items():
            self.number += 1
            folder = "".join(f"{name}={value}/" for name, value in zip(names, values, strict=True))
            path = f"{folder}part-{self.number}.parquet"
            file = File(path, dict(zip(names, values, strict=True)), tuple(held))
            self.files[f"{table.path}/{path}"] = file
            made.append(file)
        return tuple(made)

    def commit_spark(self, table: Table, read: Reading, commit: Commit) -> Snapshot:
        """Commit as Spark does, where tables are Serializable. Errors: Refused, with Delta's own words."""
        self.pause("commit", table.name)
        if not self.forced:
            for winner in table.commits[read.snapshot.version + 1 :]:
                _check_spark(winner, read, commit)
        return self._done(table, commit)

    def commit_rust(
        self, table: Table, since: Snapshot, commit: Commit, read: Reading | None = None, *, exactly: bool = False
    ) -> Snapshot:
        """Commit as delta-rs does; `exactly`: as the very next version or not at all. Errors: Refused."""
        self.pause("commit", table.name)
        if exactly and table.newest.version != since.version:
            raise Refused("Transaction failed: another commit came first")
        for winner in table.commits[since.version + 1 :]:
            _check_rust(winner, commit, read)
        return self._done(table, commit)

    def _done(self, table: Table, commit: Commit) -> Snapshot:
        made = table.add(commit)
        self.seen(table, commit)
        return made


def _check_spark(winner: Commit, read: Reading, mine: Commit) -> None:
    """Whether a commit that came first leaves room for mine: the order of Delta's ConflictChecker."""
    if winner.metadata:
        raise Refused("[DELTA_METADATA_CHANGED] MetadataChangedException: The metadata of the table has been changed")
    if read.apps & winner.txns.keys():
        raise Refused("[DELTA_CONCURRENT_TRANSACTION] ConcurrentTransactionException: same application")
    # Tables are Serializable by default: what was appended without reading anything counts too.
    for file in winner.adds:
        if any(matches(file.values) for matches in read.predicates):
            raise Refused("[DELTA_CONCURRENT_APPEND] ConcurrentAppendException: Files were added")
    if winner.removes & read.files:
        raise Refused("[DELTA_CONCURRENT_DELETE_READ] ConcurrentDeleteReadException: deleted what was read")
    if winner.removes & mine.removes:
        raise Refused("[DELTA_CONCURRENT_DELETE_DELETE] ConcurrentDeleteDeleteException: deleted twice")


def _check_rust(winner: Commit, mine: Commit, read: Reading | None) -> None:
    if winner.metadata:
        raise Refused("Metadata changed since last commit.")
    if mine.txns.keys() & winner.txns.keys():
        raise Refused("Concurrent transaction failed.")
    if read is None:
        return
    # Unlike Spark it does not see that files were removed where no row was changed.
    for file in winner.adds:
        if any(matches(file.values) for matches in read.predicates):
            raise Refused("Commit failed: a concurrent transaction added new data.")
    if not winner.packs and (winner.removes & read.files or winner.removes & mine.removes):
        raise Refused("Commit failed: a concurrent transaction deleted the same data your transaction deletes.")
