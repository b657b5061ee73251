"""The model of Delta: tables as lists of versions, and the rules by which a commit is taken, skipped or refused.

Kept apart from who commits: Spark's rules and delta-rs's differ, and both are here. What the rules are is checked
against real Delta by one table of interleavings (tests/matrix.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from greenlet import getcurrent

from tests.simulator import rules
from tests.simulator.rules import Refused, Unanswered
from tests.simulator.tables import Commit, File, Reading, RowDict, Snapshot, Table

Pause = Callable[[str, str], None]


class Lake:
    """All tables, and the hooks of whoever steers.

    `pause` before each read and commit; `seen` after each commit; `changed` where a table's past is another now; `now`,
    and `clock` of the process that asks; `answer`: what a committer hears of a commit that landed ("" for the truth,
    else `refused` or `unknown`).
    """

    exclusive = True  # Spark's log store creates a version where there is none, and never overwrites
    recognises = True  # Spark's log store knows a version that is its own
    flushes = True  # Spark's log store returns once a version is on disk

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.files: dict[str, File] = {}
        self.gone: dict[str, File] = {}  # what was removed: a commit may name it all the same
        self.number = self.removed = 0
        self.misheard: Counter[Any] = (
            Counter()
        )  # of each process, commits that it cannot tell from others but by looking
        self.power_fails = False  # so that it matters when a version is on disk
        self.gaps = False  # committers give way between their look at the log and the version that they put there
        self.pause: Pause = lambda what, table: None
        self.seen: Callable[[Table, Commit], None] = lambda table, commit: None
        self.changed: Callable[[Table], None] = lambda table: None
        self.answer: Callable[[Table], str] = lambda table: ""
        self.now: Callable[[], float] = lambda: 0.0
        self.clock: Callable[[], float] = lambda: 0.0

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
            file = File(path, dict(zip(names, values, strict=True)), tuple(held), self.now())
            self.files[f"{table.path}/{path}"] = file
            made.append(file)
        return tuple(made)

    def commit_spark(self, table: Table, read: Reading, commit: Commit) -> Snapshot:
        """Commit as Spark does, where tables are Serializable. Errors: Refused with Delta's own words, Unanswered."""

        def check(winner: Commit) -> None:
            rules.check_spark(winner, read, commit)

        made = self._commit(table, read.snapshot.version, commit, check, spark=True)
        if self.flushes:
            self.flush(table, made.version)
        heard = self.answer(table)
        if heard == "refused":
            self.misheard[getcurrent()] += 1
            if not self.recognises:  # it takes its own commit for another's
                return self._commit(table, made.version - 1, commit, check, spark=True)
        if heard == "unknown":
            what = "clickjoin.storage.CommitStateUnknownException"
            raise Unanswered(f"{what}: {table.path}: version {made.version}: Input/output error")
        return made

    def commit_rust(
        self, table: Table, since: Snapshot, commit: Commit, read: Reading | None = None, *, exactly: bool = False
    ) -> Snapshot:
        """Commit as delta-rs does; `exactly`: as the very next version or not at all. Errors: Refused, Unanswered."""

        def check(winner: Commit) -> None:
            if exactly:
                raise Refused("Transaction failed: another commit came first")
            rules.check_rust(winner, commit, read)

        made = self._commit(table, since.version, commit, check)
        heard = self.answer(table)
        self.misheard[getcurrent()] += bool(heard)
        if heard == "refused":
            return self._commit(table, made.version - 1, commit, check)
        if heard == "unknown":
            raise Unanswered(f"{table.path}: version {made.version}: Input/output error")
        return made

    def flush(self, table: Table, version: int) -> None:
        """Have a version on disk, with those before it."""
        if self.power_fails:
            self.pause("flush", table.name)
        table.durable = max(table.durable, version)

    def _commit(
        self, table: Table, since: int, commit: Commit, check: Callable[[Commit], None], *, spark: bool = False
    ) -> Snapshot:
        """Look for conflicts with all versions since one, and put the next; again where that is there by then."""
        self.pause("commit", table.name)
        while True:
            for winner in table.commits[since + 1 :]:
                check(winner)
            since = table.newest.version
            if self.gaps:
                self.pause("put" if spark else "link", table.name)
            if since == table.newest.version:
                table.add(commit, self.now())
                table.removed.update(dict.fromkeys(commit.removes, self.clock()))
                self.seen(table, commit)
                return table.newest
            if spark and not self.exclusive:
                table.overwrite(since + 1, commit)
                self.changed(table)
                return table.snapshots[since + 1]


__all__ = ["Commit", "File", "Lake", "Reading", "Refused", "Snapshot", "Table", "Unanswered"]
