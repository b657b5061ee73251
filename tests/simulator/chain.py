"""A pipeline that reads another's output: the product's source of tables, over the model's log and files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.kernel import table_rows
from clickjoin.kernel.read_lines import SCHEMA
from clickjoin.kernel.table_rows import RowFile, TableChunk
from clickjoin.lake.table_changes import Entry, Facts
from clickjoin.model.ids import TypeHints
from clickjoin.model.split import Split
from clickjoin.sources.delta.source import DeltaSource
from tests.simulator import frames, rust
from tests.simulator.ports import Folder
from tests.simulator.values import names_of_ddl

if TYPE_CHECKING:
    from clickjoin.model.ids import RecordSpec
    from tests.simulator.model import Commit, File, Table


def install() -> None:
    """Have the source of tables find the model's files."""
    source: Any = import_module("clickjoin.sources.delta.source")
    source.location = Folder
    table_rows._lines = _lines


class ModelLog:
    """The log of a table of the model; see planning.Log. A look is a point at which others may go on."""

    def __init__(self, path: str) -> None:
        self._path = path

    def _table(self) -> Table:
        lake = rust.lake()
        found = lake.table(self._path)
        assert found, self._path
        lake.pause("read", found.name)
        return found

    def facts(self, *, again: bool = False) -> Facts:
        """The table as it is."""
        return Facts(self._table().newest.version, self._path)

    def next_after(self, version: int) -> int | None:
        """The first version from this one on."""
        return version if version < len(self._table().commits) else None

    def entry(self, version: int) -> Entry | None:
        """What a version did."""
        table = self._table()
        if version >= len(table.commits):
            return None
        commit, mark = table.commits[version], _mark(table, version)
        if commit.packs:
            return Entry(version, table.times[version], mark)
        before = table.snapshots[version - 1].files if version else {}
        removed = tuple(_row_file(before[path]) for path in sorted(commit.removes & before.keys()))
        return Entry(version, table.times[version], mark, added=tuple(map(_row_file, commit.adds)), removed=removed)

    def mark(self, version: int) -> str | None:
        """What tells an entry from another in its place."""
        table = self._table()
        return _mark(table, version) if version < len(table.commits) else None

    def files_at(self, version: int) -> tuple[RowFile, ...] | None:
        """All files of a version, oldest first."""
        table = self._table()
        if version >= len(table.snapshots):
            return None
        held = sorted(table.snapshots[version].files.values(), key=lambda file: (file.at, file.path))
        return tuple(map(_row_file, held))

    def is_there(self) -> bool:
        """No folder is lost here."""
        return True

    def forget(self) -> None:
        """Nothing is kept."""


def _mark(table: Table, version: int) -> str:
    """Numbers of files are given out once, so no two entries with files are alike."""
    commit: Commit = table.commits[version]
    return repr(
        ([file.path for file in commit.adds], sorted(commit.removes), sorted(commit.txns.items()), commit.nonce)
    )


def _row_file(file: File) -> RowFile:
    return RowFile(file.path, {}, len(file.rows), 1000 * len(file.rows))


def _lines(chunk: TableChunk, file: RowFile, begin: int, end: int) -> Iterator[tuple[int, list[bytes], TypeHints]]:
    """Rows of a file as lines, as kernel.table_rows has them. Errors: FileNotFoundError."""
    lake, place = rust.lake(), f"{chunk.root}/{file.path}"
    lake.pause("open", chunk.root.rsplit("/", 1)[-1])
    found = lake.files.get(place)
    if found is None:
        raise FileNotFoundError(place)
    rows = found.rows[begin:end]
    yield begin, [f"{json.dumps(row, default=str)}\n".encode() for row in rows], TypeHints()


class TableSource(DeltaSource):
    """The Source port over a table of the model."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._log: Any = ModelLog(path)

    def read_through(self, spark: Any, splits: Sequence[Split], spec: RecordSpec, each: Any, ddl: str) -> Any:
        """What the workers make of the records."""
        batches = (batch for chunk in self.chunks(splits) for batch in table_rows.read_piece(chunk, spec))
        records = pa.Table.from_batches(batches, schema=SCHEMA).to_batches()
        made = [row for batch in each(iter(records)) for row in batch.to_pylist()]
        return frames.DataFrame(spark, names_of_ddl(ddl), lambda: made)
