"""Tables through their logs alone, for anyone who only reads: no Spark, and no way to commit.

What can be known of any table from its log, and the rows of those that are small. A look costs about 10 ms.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow.parquet import filters_to_expression

from clickjoin.kernel.filesystem import filesystem
from clickjoin.kernel.types import arrow_type
from clickjoin.lake import restored, rows_read
from clickjoin.lake.ahead import Ahead
from clickjoin.lake.continuity import Watched
from clickjoin.lake.kept_rows import KeptRows
from clickjoin.lake.light_table import Lightener, shows_newest
from clickjoin.lake.log_repair import drop_checksums_ahead
from clickjoin.lake.s3_table import S3Table
from clickjoin.lake.side_by_side import together
from clickjoin.lake.store_options import store_options
from clickjoin.lake.table_features import FeatureRefused, unknown_feature
from clickjoin.lake.table_format import Fitness, column_types, is_table, require_fit
from clickjoin.lake.table_settings import as_made
from clickjoin.lake.txn_log import TxnLog
from clickjoin.model.errors import LakeError, TableMissing
from clickjoin.model.places import JOINED, folder_of, is_on_s3, output_of
from clickjoin.model.txn import SeenCommits, Shown
from clickjoin.schemas import BY_NAME, DEDUPLICATED, Table
from clickjoin.schemas.format import ENGINE, FIRST_ENGINE, ZONES


class DeltaReader:
    """The tables under one folder, to read. One instance a thread, or threads with a table each."""

    def __init__(self, root: str, own: Mapping[str, Table] | None = None, within: str | None = None) -> None:
        """`own`: tables, by name, where they are others than a lake's; `within`: the lake that then holds them."""
        self._root, self._own, self._within = root, own, within
        self._lake_mark = restored.mark(within) if within else ""
        self._options = store_options(root)
        self._open: dict[str, DeltaTable] = {}
        self._ahead = Ahead()
        self._light = Lightener()
        self._fitness = Fitness()
        self._made: dict[str, Table] = {}
        self._still: Set[str] = frozenset()  # tables that are not looked at again for now
        self._txns: dict[str, TxnLog] = {}  # of tables where each read is a request
        self._rows = KeptRows()
        self._mark = restored.mark(root)
        self.noted = SeenCommits()
        self._watched: dict[str, Watched] = {}

    @property
    def root(self) -> str:
        """The folder that the tables lie in."""
        return self._root

    def path(self, name: str) -> str:
        """Where a table lies."""
        return folder_of(self._root, name)

    def exists(self, name: str) -> bool:
        """Whether the table has been created."""
        return name in self._open or self.is_ahead(name) or is_table(self.path(name), self._options)

    def open(self, name: str) -> DeltaTable:
        """The table at its newest version. Errors: TableMissing, LakeReplaced, LakeError."""
        return self._opened(name, name not in self._still)

    def _opened(self, name: str, looks: bool) -> DeltaTable:
        if (ahead := self._ahead.take(name)) is not None:
            self._open.setdefault(name, ahead)
        try:
            if looks or not self._bring_forward(name):
                self._look(name)
        except TableNotFoundError as error:
            raise self._missing(name) from error
        except DeltaError as error:
            self.require_same()  # what it can make nothing of may be another lake's
            if drop_checksums_ahead(self.path(name)):
                return self._opened(name, looks=True)
            self._follow(name)  # it may have become shorter than what was read of it
            raise unknown_feature(error, self.path(name)) or error from error
        self._require_features(name)
        self._follow(name)
        return self._open[name]

    def _follow(self, name: str) -> None:
        """Check that the log is the one that was read so far. Errors: LakeReplaced, LakeError (see lake.continuity)."""
        if (table := self._open.get(name)) is not None:
            place = str(table.log.folder) if isinstance(table, S3Table) else self.path(name)
            self._watched.setdefault(name, Watched(self.path(name))).follow(place, int(table.version()))

    def _require_features(self, name: str) -> None:
        try:
            self._fitness.require(name, self._open[name], self.path(name))
        except FeatureRefused:
            self.require_same()  # it may be what a restore left in the place of later versions
            raise

    def _look(self, name: str) -> None:
        table = self._open.get(name)
        if isinstance(table, S3Table):  # a handle from before a restore cannot get past it: the order is the same
            together(table.update_incremental, self.require_same)
            return
        if table is not None:
            if not shows_newest(table):
                table.update_incremental()
                self._open[name] = self._light.of(name, table)
        elif is_on_s3(self._root):
            self._open[name] = S3Table(self.path(name), lambda: self.require_same())
        else:
            self._open[name] = self._light.of(name, DeltaTable(self.path(name)))
        self.require_same()

    def _bring_forward(self, name: str) -> bool:
        """Bring a table to the newest version that this process knows; False where it has to look."""
        table = self._open.get(name)
        if not isinstance(table, S3Table) or not table.may_be_newest:
            return False
        table.bring_forward()
        return True

    @contextmanager
    def looked_at(self, *names: str) -> Iterator[None]:
        """Look at some tables now, and not again in here: commits of others are seen at the next look.

        On a local disk a look costs little, and each `open` makes its own.
        """
        self.look_at(names)
        before, self._still = self._still, self._still | set(names)
        try:
            yield
        finally:
            self._still = before

    def moved(self, name: str) -> None:
        """Look at a table from now on, also where `looked_at` holds: another program has committed to it for us."""
        self._still = self._still - {name}

    def look_at(self, names: Sequence[str]) -> None:
        """Look at some tables on S3 side by side; those that were not opened yet still are not."""
        if not is_on_s3(self._root):
            return
        new = [name for name in names if self._known(name) is None]
        looks = [table.update_incremental for name in names if isinstance(table := self._known(name), S3Table)]
        if new:
            together(lambda: self._ahead.load(self._root, new, lambda: self.require_same()), *looks)
            self.require_same()
        elif looks:
            together(self.require_same, *looks)

    def _known(self, name: str) -> DeltaTable | None:
        return self._open[name] if name in self._open else self._ahead.get(name)

    @property
    def is_blank(self) -> bool:
        """Whether no table was looked at yet."""
        return not self._open and not self._ahead

    def is_ahead(self, name: str) -> bool:
        """Whether a table was looked at and not opened since."""
        return name in self._ahead

    def log_copy(self, name: str) -> str | None:
        """Where a copy of a table's log lies, as of the last look; None where there is none."""
        table = self._known(name)
        return str(table.log.folder) if isinstance(table, S3Table) else None

    def _missing(self, name: str) -> LakeError:
        if half := restored.half_restored(self._root):
            return restored.cut_short(self._root, half)
        if name == "registry" and self.exists("joined"):
            remedy = "Run `clickjoin registry rebuild`"
        else:
            remedy = (
                "Check that the lake is mounted; a new one is made by `clickjoin init`, or the first `drain` or `run`"
            )
        return TableMissing(f"{self.path(name)}: no such table", remedy=remedy)

    def require_same(self) -> None:
        """Check that nothing has been restored or rebuilt since this was made. Errors: LakeReplaced."""
        if self._within:
            restored.require_same(self._within, self._lake_mark)
        restored.require_same(self._root, self._mark)

    def require_newest(self, name: str) -> None:
        """Check that the newest version that is known of a table is still there. Errors: LakeReplaced."""
        if isinstance(table := self.open(name), S3Table):  # on a disk each look sees it
            table.require_newest()

    def forget(self, name: str) -> None:
        """Look at a table again the next time: another may lie in its place."""
        self._open.pop(name, None)
        self._ahead.take(name)
        self._made.pop(name, None)
        self._light.forget(name)
        self._fitness.forget(name)
        self._txns.pop(name, None)
        self._rows.forget(name)
        self._watched.pop(name, None)

    def table(self, name: str) -> Table:
        """A table's own columns, its partitions and statistics, as this lake was made."""
        if self._own is not None:
            return self._own[name]
        own = DEDUPLICATED if name == JOINED and output_of(self._root) == DEDUPLICATED.name else BY_NAME[name]
        if name != JOINED:
            return own
        if name not in self._made:
            self._made[name] = as_made(own, self._open.get(name) or self.open(name))
        return self._made[name]

    @property
    def engine(self) -> str:
        """The engine that ran last on this lake. Errors: as of `open`."""
        return (self.open("journal").metadata().configuration or {}).get(ENGINE, FIRST_ENGINE)

    @property
    def zones(self) -> dict[str, str]:
        """The rules of time zones that this lake keeps, by zone (model.zones). Errors: as of `open`.

        What the journal says holds; where that was lost and rebuilt, what the timeline says.
        """
        return self.zones_in("shard_timeline") | self.zones_in("journal")

    def zones_in(self, name: str) -> dict[str, str]:
        """The same as one table says them."""
        found: dict[str, str] = json.loads((self.open(name).metadata().configuration or {}).get(ZONES, "{}"))
        return found

    def version(self, name: str) -> int:
        """Newest version of a table."""
        return int(self.open(name).version())

    def at(self, name: str, version: int) -> DeltaTable:
        """A table as of a version. Errors: DeltaError where that is gone; and as of `open`."""
        newest = self.open(name)
        return newest if newest.version() == version else DeltaTable(self.path(name), version, self._options)

    def latest_txn_version(self, name: str, app_id: str) -> int:
        """Newest `txnVersion` that a table holds of one `txnAppId`; -1 if none."""
        return self._settled(self.open(name), name, app_id)

    def _settled(self, table: DeltaTable, name: str, app_id: str) -> int:
        found = self._latest_txn(name, table, app_id)
        self.noted.saw(name, app_id, int(found or 0))
        return -1 if found is None else int(found)

    def _latest_txn(self, name: str, table: DeltaTable, app_id: str) -> int | None:
        if not isinstance(table, S3Table):
            return table.transaction_version(app_id)
        place = str(table.log.folder)
        if name not in self._txns or self._txns[name].path != place:
            self._txns[name] = TxnLog(place)
        return self._txns[name].latest(table, app_id)

    def shown(self) -> Shown:
        """Id and version of each table as it was last opened; versions that were lost count."""
        lost = self.noted.lost
        return {
            name: (str(table.metadata().id), int(table.version()) + lost.get(name, 0))
            for name, table in self._open.items()
        }

    def require_fit(self, name: str) -> dict[str, str]:
        """Check that this program can work on a table; returns its columns.

        One looked at ahead is not opened. Errors: as `open`.
        """
        ahead = self._ahead.get(name)
        table = self.open(name) if ahead is None else ahead
        require_fit(table, self.path(name))
        return column_types(table)

    def rows(self, name: str) -> int:
        """Number of rows, from the log's statistics alone."""
        actions = self.files(name)
        return int(sum(actions["num_records"].to_pylist())) if actions.num_rows else 0

    def rows_at(self, name: str, version: int) -> int | None:
        """The same as of a version; None where that cannot be read any more."""
        try:
            actions = self.files_at(name, version)
        except DeltaError:
            return None
        return int(sum(actions["num_records"].to_pylist())) if actions.num_rows else 0

    def files(self, name: str) -> pa.Table:
        """Files of a table with their partition values and statistics, as deltalake's flattened add actions."""
        return pa.table(self.open(name).get_add_actions(flatten=True))

    def files_at(self, name: str, version: int) -> pa.Table:
        """The same as of a version. Errors: as of `at`."""
        return pa.table(self.at(name, version).get_add_actions(flatten=True))

    def files_if_kept(self, name: str, version: int) -> pa.Table | None:
        """The same; None where the log of that version has been cleaned up."""
        newest = self.open(name)
        try:
            return self.files_at(name, version) if version <= newest.version() else None
        except DeltaError:
            return None

    def columns(self, name: str) -> dict[str, str]:
        """Column names and their Delta types."""
        return column_types(self.open(name))

    def schema(self, name: str) -> pa.Schema:
        """All columns of a table, for files of it. Errors: LakeError where one is of a type that is none of ours."""
        kinds = self.columns(name)
        try:
            return pa.schema([(column, arrow_type(kind)) for column, kind in kinds.items()])
        except KeyError as error:
            raise LakeError(
                f"{self.path(name)}: a column is of type {error.args[0]}, of which no file is written here",
                remedy="Take the column away again, or give it another type",
            ) from error

    def read(self, name: str, filters: list[Any] | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows of a table as Arrow; filters as pyarrow's `[(column, op, value)]`, pushed down to files."""
        files, table, wanted = self._files(name), self.open(name), list(columns) if columns else None

        def rows() -> pa.Table:
            return rows_read.rows(table, filters, wanted, files)

        if not isinstance(table, S3Table):
            return rows()
        return self._rows.of(name, int(table.version()), filters, wanted, rows)

    def read_at(self, name: str, version: int, filters: list[Any] | None, columns: Sequence[str]) -> pa.Table:
        """Rows as `read` gives them, as of a version. Errors: as of `at`."""
        return rows_read.rows(self.at(name, version), filters, list(columns), self._files(name))

    def batches(self, name: str, filters: list[Any] | None, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a table's rows, a few at a time, for tables that may not fit in memory.

        Filters as in `read`, on columns that are no text: texts of older files are of another Arrow type.
        """
        rows = self.open(name).to_pyarrow_dataset(filesystem=self._files(name))
        where = filters_to_expression(filters) if filters else None
        yield from rows.to_batches(columns=list(columns), filter=where, batch_readahead=1, fragment_readahead=1)

    def _files(self, name: str) -> pafs.FileSystem:
        # Arrow's own file system: deltalake's, which is Python underneath, aborts some processes as they exit.
        base, inner = filesystem(self.path(name))
        return pafs.SubTreeFileSystem(inner, base)
