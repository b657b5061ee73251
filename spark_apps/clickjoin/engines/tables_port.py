"""What an engine does with the tables under one folder: rows that fit into this process, settings, deletions.

Which commit promises what is listed in docs/engines.md.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from clickjoin.kernel.types import delta_type
from clickjoin.lake import restored
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.table_settings import STATISTICS
from clickjoin.model.errors import LakeError
from clickjoin.schemas.format import ENGINE, ZONES

if TYPE_CHECKING:
    import pyarrow as pa

    from clickjoin.lake.maintenance import Size
    from clickjoin.model.txn import Txn
    from clickjoin.schemas import Table

_TRIES = (False, False, True)  # of a change of settings: which is the last


class UnderWay(NamedTuple):
    """Batches under way: numbers of those that are not settled; and the newest that was planned, by replica.

    The latter is asked first: a batch that is planned later is in neither, and has a higher number.
    """

    open: Collection[int]
    planned: Mapping[str, int]


@dataclass(frozen=True)
class Settings:
    """New columns of a table (name to Spark SQL type) with their comments, and properties."""

    columns: Mapping[str, str] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


class Tables(DeltaReader, ABC):
    """The tables under one folder, to read and to commit to: rows that fit into this process, settings, deletions."""

    @abstractmethod
    def copy(self) -> Tables:
        """The same tables for another thread."""

    @abstractmethod
    def create(self, table: Table) -> bool:
        """Create an empty table that says its format; False if it is there already, or another process was first."""

    @abstractmethod
    def _change_settings(self, name: str, change: Settings, last: bool) -> bool:
        """Commit a change of a table's settings; False where another commit came first, unless it is the `last` try.

        Either way the next look is a new one, also where the table was just looked at.
        """

    def add_columns(
        self,
        name: str,
        columns: Mapping[str, str],
        comments: Mapping[str, str] | None = None,
        *,
        whose: str = "the adapter",
    ) -> None:
        """Add columns (name to Spark SQL type) that a table lacks; `comments` by name. `whose`: who asks for them.

        Errors: LakeError where one has another type, or another spelling.
        """
        for last in _TRIES:
            known = self.columns(name)
            self.require_addable(name, columns, whose, known)
            new = {column: kind for column, kind in columns.items() if column not in known}
            if not new or self._change_settings(name, Settings(new, comments or {}), last):
                return

    def add_statistics(self, name: str, columns: Sequence[str]) -> None:
        """Keep statistics of some more columns in the files that are written from now on."""
        for last in _TRIES:
            known = (self.open(name).metadata().configuration or {}).get(STATISTICS, "").split(",")
            wanted = {STATISTICS: ",".join(dict.fromkeys([*known, *columns]))}
            if not any(known) or set(columns) <= set(known):
                return
            if self._change_settings(name, Settings(properties=wanted), last):
                return

    def set_engine(self, engine: str) -> None:
        """Keep the engine that works on this lake from now on."""
        for last in _TRIES:
            if self.engine == engine:
                return
            if self._change_settings("journal", Settings(properties={ENGINE: engine}), last):
                return

    def set_zones(self, rules: Mapping[str, str]) -> None:
        """Keep the rules (by zone) that times of this lake's events are read by, beside those that are kept already.

        In two tables, since a rebuilt journal says nothing of them.
        """
        for name in ("journal", "shard_timeline"):
            for last in _TRIES:
                kept = {**rules, **self.zones}
                if self.zones_in(name) == kept:
                    break
                properties = {ZONES: json.dumps(kept, separators=(",", ":"))}
                if self._change_settings(name, Settings(properties=properties), last):
                    break

    @abstractmethod
    def append(self, name: str, rows: Sequence[dict[str, Any]], txn: Txn | None = None) -> bool:
        """Append rows in one commit; False, and nothing written, if the table already holds this txn."""

    @abstractmethod
    def append_table(self, name: str, data: pa.Table, txn: Txn | None = None) -> bool:
        """The same with an Arrow table, columns as arrow_schema has them."""

    @abstractmethod
    def commit_txn_only(self, name: str, txn: Txn) -> bool:
        """Commit a txn without rows, so that no late copy of the same batch can commit rows under it.

        False if the table holds the txn already.
        """

    @abstractmethod
    def append_next(self, name: str, version: int, row: dict[str, Any], unless: str, txn: Txn | None = None) -> bool:
        """Append a row if nothing has come since a version that `unless` (Spark SQL) names; whether it has been.

        Compare and set: for decisions that rest on what a table held at that version. Of two writers of rows that name
        one another, one does it.
        """

    @abstractmethod
    def ensure_durable(self, name: str) -> None:
        """Flush a table's newest versions to disk, no matter who wrote them. Errors: CommitStateUnknown."""

    @abstractmethod
    def delete(self, name: str, where: str) -> int:
        """Delete the rows of a condition (Spark SQL); returns how many. Errors: LakeError after many other commits."""

    @abstractmethod
    def drop_buckets(self, name: str, before: str, under_way: Callable[[], UnderWay] | None = None) -> Size:
        """Drop all partitions whose bucket sorts before one: a metadata-only commit. Returns what was dropped.

        `under_way`: batches whose rows are still to be read: what may be theirs stays, and what came after the
        question.
        """

    @abstractmethod
    def drop_before(self, name: str, column: str, before: datetime) -> bool:
        """Drop a table's rows whose time is before a moment; False if there are none, or another writer came first."""

    @abstractmethod
    def compact(self, name: str, fewest: int) -> int:
        """Rewrite a table's small files into few, where there are so many; returns how many. Appends go on.

        0 as well where another writer came first.
        """

    def replaces(self, what: str, now: datetime) -> None:
        """Let no process but this one commit any more with what it has opened (see restored.leave_mark)."""
        restored.leave_mark(self._root, what, now)
        self._mark = restored.mark(self._root)

    def require_addable(
        self, name: str, columns: Mapping[str, str], whose: str, known: Mapping[str, str] | None = None
    ) -> None:
        """Check that a table lacks these columns (name to Spark SQL type), or has them. Errors: LakeError."""
        known = self.columns(name) if known is None else known
        spelt = {column.lower(): column for column in known}
        for column, kind in columns.items():
            there = spelt.get(column.lower(), column)
            if there != column:
                raise LakeError(
                    f"{self.path(name)}: column {there} is there, and {whose} makes {column}",
                    remedy="Names that differ in case alone are one to Spark: write it as it is there",
                )
            if column in known and known[column] != delta_type(kind):
                raise LakeError(
                    f"{self.path(name)}: column {column} is {known[column]}, and {whose} makes it {kind}",
                    remedy=f"Give the column of {whose} another name, or the type it has",
                )
