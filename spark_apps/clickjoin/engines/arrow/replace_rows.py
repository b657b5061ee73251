"""Replacing a few rows of a table by others in one commit, once a txn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from clickjoin.engines.arrow.rewrite_rows import Rewriting, near
from clickjoin.kernel.rewrite_task import Events, change

if TYPE_CHECKING:
    from clickjoin.engines.arrow.lake import ArrowLake
    from clickjoin.kernel.data_file import DataFile
    from clickjoin.model.txn import Txn


def replace_rows(
    lake: ArrowLake, name: str, version: int, held: pa.Table, kept: pa.Table, same: Sequence[str], txn: Txn
) -> bool:
    """Replace rows of a table by those of them that are kept; False where they are no longer what they were.

    `held`: all rows of a version that have these ids and times, and these values in the columns `same`. Readers see the
    table before or after, nothing between. Nothing happens where the table holds the txn already.
    """
    known = lake.delta.schema(name)
    work = _Replacing(
        lake,
        name,
        version,
        held,
        kept.select(known.names).cast(known),
        Events(_keys(held, same, known), tuple(same)),
        txn,
    )
    try:
        lake.rerun(name, work.attempt)
    except _Moved:
        return False
    return True


def _keys(held: pa.Table, same: Sequence[str], known: pa.Schema) -> pa.Table:
    names = ["event_id", "event_time", *same]
    return held.select(names).cast(pa.schema([known.field(name) for name in names]))


class _Moved(Exception):
    """Rows that were read have been changed, moved or removed since."""


class _Replacing(Rewriting):
    def __init__(
        self, lake: ArrowLake, name: str, version: int, held: pa.Table, kept: pa.Table, meant: Events, txn: Txn
    ) -> None:
        super().__init__(lake, name, near(meant.keys), change(meant), txn)
        self._delta, self._table, self._kept, self._count = lake.delta, name, kept, held.num_rows
        self._read = frozenset(lake.delta.files_at(name, version)["path"].to_pylist())

    def beside(self, old: Sequence[DataFile], rows: int) -> Sequence[DataFile]:
        """The rows that are kept, as files. Errors: _Moved."""
        if rows != self._count or not {file.path for file in old} <= self._read:
            raise _Moved
        return self._delta.write(self._table, self._kept)
