"""Rows of a table that go, get other values, or come, in one commit, without Spark's MERGE.

The files that hold such rows are written again, and one commit takes them away and adds the new ones. It is the very
next version after one whose every file was looked at: whatever another has committed meanwhile is looked at first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.engines.arrow.replace_files import as_files
from clickjoin.kernel import data_skipping, rewrite_task
from clickjoin.kernel.data_file import DataFile
from clickjoin.kernel.event_key import micros
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.rewrite_task import Change, Done, Job, Part
from clickjoin.model.errors import CommitRefused

if TYPE_CHECKING:
    from clickjoin.engines.arrow.lake import ArrowLake
    from clickjoin.lake.table_version import TableVersion
    from clickjoin.model.extent import Extent
    from clickjoin.model.txn import Txn

Files = Callable[[pa.Table], pa.Table]
_ROWS_HERE, _BYTES_HERE = 200_000, 32 << 20  # of files that this process reads itself
_FILES_A_TASK = 4
_DONE = "number LONG, done STRING"


def rewrite_rows(lake: ArrowLake, name: str, files: Files, change: Change, txn: Txn | None = None) -> int:
    """Change rows of a table in one commit; returns how many, 0 where it holds the txn already.

    `files`: those that can hold such rows, of deltalake's flattened add actions (see `near`). Without a txn it can be
    repeated: nothing is committed where no row is left to change. Errors: as of ArrowLake.rerun, and Unwritable.
    """
    work = Rewriting(lake, name, files, change, txn)
    return lake.rerun(name, work.attempt)


def count_rows(lake: ArrowLake, name: str, files: Files, change: Change) -> int:
    """How many rows of a table a change is of; nothing is changed. See rewrite_rows."""
    return Rewriting(lake, name, files, change, None, writes=False).count()


def near(events: pa.Table, extent: Extent | None = None, shards: Iterable[int] | None = None) -> Files:
    """The files that can hold rows of some events: by their times, and where they lie. Columns in: event_time."""
    times = np.sort(micros(events))
    named = None if shards is None else tuple(shards)

    def files(actions: pa.Table) -> pa.Table:
        some = actions if extent is None else data_skipping.within(actions, extent, shards=named)
        return data_skipping.at_times(some, times)

    return files


class Rewriting:
    """One change of a table, over all attempts to commit it: a file that was written again once need not be again."""

    def __init__(
        self, lake: ArrowLake, name: str, files: Files, change: Change, txn: Txn | None, *, writes: bool = True
    ) -> None:
        self._lake, self._name, self._near, self._txn = lake, name, files, txn
        self._job = Job(lake.target(lake.delta.table(name), lake.delta.schema(name)), change, writes)
        self._done: dict[str, Done] = {}
        self._tried: tuple[frozenset[str], int] = frozenset(), 0  # what the last commit added, and the rows it changed

    def attempt(self) -> int:
        """Commit after the newest version, or find that it is done. Errors: CommitRefused where another came first."""
        delta = self._lake.delta
        newest = delta.newest(self._name)
        if self._is_done(newest):
            delta.ensure_durable(self._name)
            return self._tried[1]
        old = [file for file in self._looked_at(newest) if self._done[file.path].rows]
        if not old and self._txn is None:
            delta.ensure_durable(self._name)  # it may be what a process has done that was killed before it could
            return 0
        rows = sum(self._done[file.path].rows for file in old)
        new = [*(made for file in old for made in self._done[file.path].files), *self.beside(old, rows)]
        self._tried = frozenset(file.path for file in new), rows
        if not newest.commit_next(new, self._txn, old):
            raise CommitRefused(f"{delta.path(self._name)}: another commit came first")
        if self._txn is not None:
            delta.committed(self._name, newest.version + 1, self._txn)
        return self._tried[1]

    def beside(self, old: Sequence[DataFile], rows: int) -> Sequence[DataFile]:
        """Files that come besides, in the place of so many rows of old ones."""
        return ()

    def count(self) -> int:
        """The rows that are meant, in the newest version."""
        return sum(self._done[file.path].rows for file in self._looked_at(self._lake.delta.newest(self._name)))

    def _is_done(self, newest: TableVersion) -> bool:
        """Whether a commit is there whose answer was lost, or one of another under this txn."""
        added, _ = self._tried
        there = bool(added) and added <= set(newest.files()["path"].to_pylist())
        if there or self._txn is None or not newest.holds(self._txn):
            return there
        self._tried = frozenset(), 0
        return True

    def _looked_at(self, newest: TableVersion) -> list[DataFile]:
        """The files that can hold such rows, after each was looked at."""
        files = self._near(newest.files())
        known = [
            file
            for file in as_files(files, self._job.target.partitions)
            if not self._lake.passes_over(self._name, file.path)
        ]
        new = [Part(file.path, file.values) for file in known if file.path not in self._done]
        if new:
            some = files.filter(pc.is_in(files["path"], pa.array([part.path for part in new], files["path"].type)))
            self._done |= dict(zip((part.path for part in new), self._look(new, some), strict=True))
        return known

    def _look(self, parts: Sequence[Part], files: pa.Table) -> Iterable[Done]:
        size = pc.sum(files["size_bytes"]).as_py() or 0
        if len(parts) == 1 or (data_skipping.rows(files) <= _ROWS_HERE and size <= _BYTES_HERE):
            return [rewrite_task.rewritten(self._job, part) for part in parts]
        numbers = self._lake.spark.range(0, len(parts), 1, -(-len(parts) // _FILES_A_TASK))
        work = checked(rewrite_task.work_of(self._job, parts))
        found = {row["number"]: json.loads(row["done"]) for row in numbers.mapInArrow(work, _DONE).collect()}
        return [
            Done(rows, [DataFile(*file) for file in made]) for rows, made in map(found.__getitem__, range(len(parts)))
        ]
