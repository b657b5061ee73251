"""The face of `deltalake`: a table handle with its own snapshot, appends and deletes by delta-rs's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from tests.simulator.model import Commit, File, Lake, Reading, Refused, Snapshot, Table, Unanswered
from tests.simulator.rust_types import (
    ARROW,
    AddAction,
    CommitFailedError,
    CommitProperties,
    DeltaError,
    Field,
    PrimitiveType,
    RemoveAction,
    Rows,
    Schema,
    TableNotFoundError,
)
from tests.simulator.sql import expression
from tests.simulator.stale import stale
from tests.simulator.statements import ask

pa.set_cpu_count(1)  # tables of a few rows: threads only cost


_lake: list[Lake] = [Lake()]


def install(lake: Lake) -> None:
    """Where tables are looked for from now on."""
    _lake[0] = lake


def lake() -> Lake:
    """The lake that is installed."""
    return _lake[0]


class Protocol(NamedTuple):
    """What a reader has to know."""

    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None
    min_writer_version: int = 2


class Metadata(NamedTuple):
    """Of a table, whichever version is looked at."""

    id: str
    partition_columns: list[str]
    configuration: Mapping[str, str] = MappingProxyType({})


class DeltaTable:
    """A handle on a table, at the version it last looked at."""

    def __init__(self, path: str, version: int | None = None, storage_options: Any = None) -> None:
        found = _lake[0].table(path)
        if found is None:
            raise TableNotFoundError(f"no table at {path}")
        self._lake, self._table, self.table_uri = _lake[0], found, path
        self._at = self._version(version) if version is not None else self._lake.look(found)

    @staticmethod
    def is_deltatable(path: str, storage_options: Any = None) -> bool:
        """Whether there is one."""
        return _lake[0].table(path) is not None

    @classmethod
    def create(cls, path: str, schema: Schema, mode: str = "error", **more: Any) -> DeltaTable:
        """Create a table. Errors: DeltaError where it is there."""
        lake = _lake[0]
        lake.pause("commit", path.rsplit("/", 1)[-1])
        if lake.table(path) is not None:
            raise DeltaError("A Delta Lake table already exists at that location.")
        columns = {field.name: str(getattr(field.type, "type", field.type)) for field in schema.fields}
        named = (more.get("configuration") or {}).get("delta.dataSkippingStatsColumns")
        statistics = named.split(",") if named else [name for name, kind in columns.items() if kind in ARROW][:32]
        made = Table(path, columns, more.get("partition_by") or [], statistics)
        made.settings = dict(more.get("configuration") or {})
        lake.tables[path.rstrip("/")] = made
        return cls(path)

    def update_incremental(self) -> None:
        """Look at the newest version."""
        self._at = self._lake.look(self._table)

    def load_as_version(self, version: int) -> None:
        """Look at one version."""
        self._at = self._version(version)

    def _version(self, version: int) -> Snapshot:
        try:
            return self._table.at_version(version)
        except Refused as error:
            raise DeltaError(str(error)) from error

    def version(self) -> int:
        """The version looked at."""
        return self._at.version

    def metadata(self) -> Metadata:
        """What identifies the table, and how it was made."""
        table = self._table
        settings = table.settings | {"delta.dataSkippingStatsColumns": ",".join(table.statistics)}
        return Metadata(table.path, list(table.partitions), settings)

    def protocol(self) -> Protocol:
        """Nothing beyond plain tables."""
        return Protocol()

    def transaction_version(self, app_id: str) -> int | None:
        """The newest txn of an app."""
        return self._at.txns.get(app_id)

    def schema(self) -> Schema:
        """Columns."""
        return Schema([Field(name, PrimitiveType(kind)) for name, kind in self._table.columns.items()])

    def get_add_actions(self, flatten: bool = True) -> Any:
        """Files with partition values and statistics."""
        return add_actions(self._table, self._at)

    def to_pyarrow_table(self, filters: Any = None, columns: Any = None, filesystem: Any = None) -> Rows:
        """Rows for which all filters hold."""
        wanted = [filters or []] if not filters or isinstance(filters[0], tuple) else filters  # either of several lists
        rows = [
            row for row in self._at.rows() if any(all(_holds(row[n], op, v) for n, op, v in part) for part in wanted)
        ]
        known = self._table.columns
        return Rows(rows, {name: known[name] for name in columns or known})

    @property
    def optimize(self) -> DeltaTable:
        """Rewriting."""
        return self

    def z_order(self, columns: Sequence[str], partition_filters: Any = None) -> dict[str, int]:
        """Rewrite files sorted: all of them, however few."""
        return self.compact(partition_filters, fewest=1)

    def compact(self, partition_filters: Any = None, fewest: int = 2) -> dict[str, int]:
        """Rewrite the files of partitions into one each."""
        wanted = [(name, op, value) for name, op, value in partition_filters or ()]
        parts: dict[tuple[Any, ...], list[File]] = {}
        for file in self._at.files.values():
            if all(_holds(str(file.values[name]), op, value) for name, op, value in wanted):
                parts.setdefault(tuple(file.values.values()), []).append(file)
        going = [file for held in parts.values() if len(held) >= fewest for file in held]
        if going:
            read = Reading(self._at, files={file.path for file in going})
            adds = self._lake.write(self._table, [row for file in going for row in file.rows])
            commit = Commit(adds, frozenset(file.path for file in going), packs=True)
            try:
                self._at = self._lake.commit_rust(self._table, self._at, commit, read)
            except Refused as error:
                raise CommitFailedError(str(error)) from error
        return {"numFilesRemoved": len(going), "numFilesAdded": len(parts)}

    def vacuum(self, retention_hours: int = 168, dry_run: bool = True, **_: Any) -> list[str]:
        """Remove files that the version looked at does not name, and that are old by this process's clock."""
        going = stale(self._lake, self._table, self._at, retention_hours)
        for path in [] if dry_run else going:
            del self._lake.files[f"{self._table.path}/{path}"]
            self._lake.removed += 1
        return going

    def create_checkpoint(self) -> None:
        """Nothing to do."""

    def cleanup_metadata(self) -> None:
        """Nothing to do."""

    @property
    def alter(self) -> DeltaTable:
        """Changes of the schema."""
        return self

    def add_columns(self, fields: Sequence[Field]) -> None:
        """More columns."""
        self._lake.commit_rust(self._table, self._at, Commit(metadata=True))
        self._table.columns |= {field.name: str(getattr(field.type, "type", field.type)) for field in fields}

    def set_table_properties(self, properties: Mapping[str, str], **_: bool) -> None:
        """Other settings, or columns with statistics."""
        try:
            self._lake.commit_rust(self._table, self._at, Commit(metadata=True))
        except Refused as error:
            raise CommitFailedError(str(error)) from error
        self._table.settings = self._table.settings | properties
        if named := properties.get("delta.dataSkippingStatsColumns"):
            self._table.statistics = tuple(named.split(","))

    def create_write_transaction(
        self,
        actions: Sequence[Any],
        mode: str,
        schema: Any,
        commit_properties: CommitProperties | None = None,
        **_: Any,
    ) -> None:
        """Commit files, whether they lie there or not, and the removal of others."""
        files = self._lake.gone | self._lake.files
        adds = tuple(files[f"{self._table.path}/{one.path}"] for one in actions if isinstance(one, AddAction))
        self._commit(adds, commit_properties, frozenset(one.path for one in actions if isinstance(one, RemoveAction)))

    def _commit(
        self, adds: tuple[File, ...], properties: CommitProperties | None, removes: frozenset[str] = frozenset()
    ) -> None:
        given = (properties.app_transactions if properties else None) or ()
        nonce = "".join((properties.custom_metadata or {}).values()) if properties else ""
        commit = Commit(adds, removes, {item.app_id: item.version for item in given}, nonce=nonce)
        only = properties is not None and properties.max_commit_retries == 0
        try:
            self._at = self._lake.commit_rust(self._table, self._at, commit, exactly=only)
        except Refused as error:
            raise CommitFailedError(str(error)) from error
        except Unanswered as error:
            raise DeltaError(f"Generic LocalFileSystem error: {error}") from error

    def delete(self, predicate: str | None = None, **more: Any) -> dict[str, int]:
        """Delete rows for which a predicate is true."""
        where = expression(predicate or "TRUE")
        read = Reading(self._at)
        removed, kept, gone = [], [], 0
        for file in ask(self._table, read, list(where.parts)):
            stay = [row for row in file.rows if where.fn(row) is not True]  # type: ignore[misc]
            if len(stay) < len(file.rows):
                removed.append(file.path)
                kept += stay
                gone += len(file.rows) - len(stay)
        given = (more.get("commit_properties") or CommitProperties()).app_transactions or ()
        commit = Commit(
            self._lake.write(self._table, kept), frozenset(removed), {item.app_id: item.version for item in given}
        )
        if removed or given:
            try:
                self._at = self._lake.commit_rust(self._table, self._at, commit, read)
            except Refused as error:
                raise CommitFailedError(str(error)) from error
        return {"num_deleted_rows": gone, "num_removed_files": len(removed)}


def write_deltalake(table: DeltaTable, data: Any, mode: str = "append", **more: Any) -> None:
    """Append rows."""
    assert mode == "append", mode
    rows = data.to_pylist()
    inner, lake = table._table, table._lake
    names = list(inner.columns)
    table._commit(lake.write(inner, [{n: row.get(n) for n in names} for row in rows]), more.get("commit_properties"))


def _holds(value: Any, op: str, other: Any) -> bool:
    if op in ("in", "not in"):
        return (value in other) is (op == "in")
    if value is None:
        return False
    if op in ("=", "=="):
        return bool(value == other)
    return bool(
        {"!=": value != other, "<": value < other, "<=": value <= other, ">": value > other}.get(op, value >= other)
    )


def add_actions(table: Table, at: Snapshot) -> Any:
    """Flattened add actions of a snapshot."""
    found = at.memo.get("actions")
    if found is None:
        files = list(at.files.values())
        data: dict[str, Any] = {
            "path": pa.array([file.path for file in files], pa.string()),
            "size_bytes": pa.array([1000 * len(file.rows) for file in files], pa.int64()),
            "num_records": pa.array([len(file.rows) for file in files], pa.int64()),
        }
        for name in table.statistics:
            if name in table.columns and name not in table.partitions:
                kind = ARROW[table.columns[name]]
                data[f"min.{name}"] = pa.array([file.bounds(name)[0] for file in files], kind)
                data[f"max.{name}"] = pa.array([file.bounds(name)[1] for file in files], kind)
        for name in table.partitions:
            data[f"partition.{name}"] = pa.array([file.values[name] for file in files], ARROW[table.columns[name]])
        found = at.memo["actions"] = pa.table(data)
    return found
