"""A table of the model: files, versions and commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.simulator.rules import Refused

RowDict = dict[str, Any]


@dataclass(eq=False)
class File:
    """A data file: its rows and partition values. Never changed once written."""

    path: str
    values: Mapping[str, Any]
    rows: tuple[RowDict, ...]
    at: float = 0.0  # when it was written, by the lake's own clock
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
    """What one commit did. `packs`: it changed no row; `nonce`: by which its writer knows it."""

    adds: tuple[File, ...] = ()
    removes: frozenset[str] = frozenset()
    txns: Mapping[str, int] = field(default_factory=dict)
    packs: bool = False
    metadata: bool = False
    nonce: str = ""


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
        self.settings: dict[str, str] = {}
        self.commits: list[Commit] = [Commit(metadata=True)]
        self.snapshots: list[Snapshot] = [Snapshot(0, {}, {})]
        self.times = [0.0]  # of each version, by the lake's own clock
        self.removed: dict[str, float] = {}  # when, by the clock of whoever removed it
        self.seen: dict[int, Commit] = {}  # commits whose content was looked at
        self.durable = 0  # the newest version that a power cut leaves, with its files

    def fork(self) -> Table:
        """A copy that can go its own way."""
        made = Table(self.path, dict(self.columns), self.partitions, self.statistics)
        made.settings = dict(self.settings)
        made.commits, made.snapshots, made.times = list(self.commits), list(self.snapshots), list(self.times)
        return made

    @property
    def newest(self) -> Snapshot:
        """The newest version."""
        return self.snapshots[-1]

    def at_version(self, version: int) -> Snapshot:
        """One version. Errors: Refused where there is none."""
        if not 0 <= int(version) < len(self.snapshots):
            raise Refused(f"[DELTA_VERSION_NOT_FOUND] {self.path} has no version {version}")
        return self.snapshots[int(version)]

    def add(self, commit: Commit, at: float = 0.0) -> Snapshot:
        """Put a commit at the end, unasked."""
        old = self.newest
        files = old.files
        if commit.adds or commit.removes:
            files = {path: file for path, file in old.files.items() if path not in commit.removes}
            files |= {file.path: file for file in commit.adds}
        txns = {**old.txns, **commit.txns} if commit.txns else old.txns
        self.commits.append(commit)
        self.times.append(at)
        self.snapshots.append(Snapshot(old.version + 1, files, txns))
        return self.newest

    def cut(self, version: int) -> list[Commit]:
        """Forget all that came after a version; returns those commits."""
        gone = self.commits[version + 1 :]
        del self.commits[version + 1 :], self.snapshots[version + 1 :], self.times[version + 1 :]
        self.durable = min(self.durable, version)
        return gone

    def overwrite(self, version: int, commit: Commit) -> None:
        """Put a commit in another's place, as rename(2) does: what the other did is gone, what came later stays."""
        for each in [commit, *self.cut(version - 1)[1:]]:
            self.add(each)
