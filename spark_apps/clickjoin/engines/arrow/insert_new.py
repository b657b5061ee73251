"""Rows that come into a table unless it holds one of their event: two processes never both add it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.engines.arrow.rewrite_rows import near
from clickjoin.kernel.arrays import distinct, mask, where
from clickjoin.kernel.data_skipping import paths
from clickjoin.kernel.event_key import found_among, micros
from clickjoin.kernel.id_filter import ids_among
from clickjoin.kernel.parquet_rows import KEYS, TimeRanges, scan_by_key
from clickjoin.model.errors import CommitRefused

if TYPE_CHECKING:
    from clickjoin.engines.arrow.lake import ArrowLake
    from clickjoin.lake.table_version import TableVersion
    from clickjoin.model.extent import Extent
    from clickjoin.model.txn import Txn

_READERS = 8


def insert_new(
    lake: ArrowLake, name: str, rows: pa.Table, extent: Extent | None = None, txn: Txn | None = None, *,
    by_id: bool = False,
) -> int:  # fmt: skip
    """Append those rows whose event_id and event_time a table does not hold yet, in one commit; returns how many.

    Nothing where the table holds the txn already; a txn is committed without rows, too.
    The commit is the very next version after the one that was read, or none: then it is read again. Columns in: the
    table's, keys each once. `extent`: where they lie. `by_id`: the id alone is the key, wherever it lies. Errors: as
    of ArrowLake.rerun.
    """
    work = _Inserting(lake, name, rows, extent, txn, by_id=by_id)
    return lake.rerun(name, work.attempt)


class _Inserting:
    def __init__(
        self, lake: ArrowLake, name: str, rows: pa.Table, extent: Extent | None, txn: Txn | None, *, by_id: bool
    ) -> None:
        known = lake.delta.schema(name)
        self._lake, self._name, self._near, self._txn = lake, name, near(rows, extent), txn
        self._by_id = by_id
        schema = pa.schema([field for field in known if field.name in rows.column_names])
        self._rows = rows.select(schema.names).cast(schema)
        self._tried: dict[str, int] = {}  # files of the last commit, of which nobody knows whether it is there

    def attempt(self) -> int:
        """Commit after the newest version, or find that nothing is left. Errors: CommitRefused."""
        delta = self._lake.delta
        newest = delta.newest(self._name)
        if self._is_done(newest):
            delta.ensure_durable(self._name)
            return sum(self._tried.values())
        new = where(self._rows, ~self._held(newest))
        if not new.num_rows and self._txn is None:
            delta.ensure_durable(self._name)  # another may have been killed before it could
            return 0
        files = delta.write(self._name, new)
        self._tried = {file.path: file.rows for file in files}
        if not newest.commit_next(files, self._txn):
            raise CommitRefused(f"{delta.path(self._name)}: another commit came first")
        if self._txn is not None:
            delta.committed(self._name, newest.version + 1, self._txn)
        return int(new.num_rows)

    def _is_done(self, newest: TableVersion) -> bool:
        """Whether a commit is there whose answer was lost, or one of another under this txn."""
        there = bool(self._tried) and self._tried.keys() <= set(newest.files()["path"].to_pylist())
        if there or self._txn is None or not newest.holds(self._txn):
            return there
        self._tried = {}
        return True

    def _held(self, newest: TableVersion) -> np.ndarray[Any, Any]:
        """Which rows are of an event that the table holds."""
        root, ids, times = self._lake.delta.path(self._name), pc.unique(self._rows["event_id"]), micros(self._rows)
        named = paths(newest.files() if self._by_id else self._near(newest.files()))
        files = [path for path in named if not self._lake.passes_over(self._name, path)]  # what a repair makes up for
        if not files:
            return np.zeros(self._rows.num_rows, np.bool_)
        if self._by_id:
            return mask(pc.is_in(self._rows["event_id"], value_set=ids_among(root, files, ids, _READERS).ids))
        return found_among(self._rows, scan_by_key(root, files, ids, TimeRanges(distinct(times)), KEYS, _READERS))
