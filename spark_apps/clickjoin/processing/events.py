"""The events of planned splits, with their keys: rows of the output that no batch before had, in just these columns.

A version that rewrote files (a repair, a rebuilt date) holds events of before again: those are known by their ids, and
left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clickjoin.kernel.parquet_lines import lines_of
from clickjoin.kernel.short_files import open_file
from clickjoin.kernel.typed_columns.columns import typed
from clickjoin.model.errors import LakeError
from clickjoin.model.typed_column import TypedColumn
from clickjoin.sources.delta.state import pieces_of

if TYPE_CHECKING:
    from clickjoin.kernel.table_rows import RowFile, TablePiece
    from clickjoin.model.field_path import FieldPath
    from clickjoin.model.split import Split

_ID, _TIME, _CHANGE = "event_id", "event_time", "_change_type"
_AGAIN = "Restore it; or run `clickjoin process --rebuild`, which begins again from the whole output"


class Row(NamedTuple):
    """Where a row of the output lies: file and number in it."""

    file: RowFile
    at: int


@dataclass(frozen=True)
class Events:
    """Ids, times (microseconds) and keys (null: none) of events, where their rows lie, and how many were left out."""

    ids: Any
    times: Any
    keys: Any
    rows: tuple[tuple[RowFile, Any], ...]
    known: int

    def __len__(self) -> int:
        return len(self.ids)

    def places(self, wanted: Any) -> Iterator[Row]:
        """Where the rows of some events lie, by their numbers, which ascend."""
        ends = np.cumsum([len(numbers) for _, numbers in self.rows])
        for event in wanted:
            part = int(np.searchsorted(ends, event, side="right"))
            file, numbers = self.rows[part]
            yield Row(file, int(numbers[event - (ends[part - 1] if part else 0)]))


class EventReader:
    """Reads events of the output at `root`; `paths`: column, and path in it, of each part of the key."""

    def __init__(self, root: str, paths: Sequence[FieldPath], as_json: Sequence[str]) -> None:
        self._root, self._paths, self._as_json = root, tuple(paths), tuple(as_json)
        self._columns = list(dict.fromkeys([_ID, _TIME, *(str(path[0]) for path in paths)]))

    def read(self, splits: Sequence[Split]) -> Events:
        """All events of some splits. Errors: LakeError for rows that cannot be read, or that were read before."""
        parts, rows, known = list[pa.Table](), list[tuple["RowFile", Any]](), 0
        for piece in (piece for split in splits for piece in pieces_of(split)):
            if piece.lost:
                raise LakeError(piece.lost, remedy=_AGAIN)
            before = self._ids_before(piece)
            for file, low, high in _ranges(piece):
                found, numbers = self._file(file, low, high, changes=piece.changes)
                if before is not None:
                    new = np.asarray(pc.invert(pc.is_in(found[_ID], value_set=before)).combine_chunks())
                    known += int((~new).sum())
                    found, numbers = found.filter(pa.array(new)), numbers[new]
                parts.append(found)
                rows.append((file, numbers))
        whole = pa.concat_tables(parts) if parts else self._none()
        return Events(
            whole[_ID].combine_chunks(),
            np.asarray(whole[_TIME].cast(pa.int64())),
            self._keys(whole),
            tuple(rows),
            known,
        )

    def _none(self) -> pa.Table:
        types = {_TIME: pa.timestamp("us", tz="UTC")}
        return pa.table({name: pa.array([], types.get(name, pa.string())) for name in self._columns})

    def _file(self, file: RowFile, low: int, high: int, *, changes: bool) -> tuple[pa.Table, Any]:
        """Rows [low, high) of a file, of changes those that were inserted; with their numbers."""
        found = self._table(file, self._columns, changes=changes).slice(low, high - low)
        numbers = np.arange(low, low + found.num_rows)
        if changes and _CHANGE in found.column_names:
            new = np.asarray(pc.equal(found[_CHANGE], "insert").combine_chunks())
            found, numbers = found.filter(pa.array(new)), numbers[new]
        return found.select(self._columns), numbers

    def _table(self, file: RowFile, names: Sequence[str], *, changes: bool = False) -> pa.Table:
        try:
            with open_file(self._root, file.path) as opened:
                parquet = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
                there = set(parquet.schema_arrow.names)
                if missing := [name for name in names if name not in there and name not in file.values]:
                    raise LakeError(f"{self._root}: has no column {missing[0]}", remedy="Fix process.key")
                wanted = [name for name in names if name in there]
                found = parquet.read(columns=[*wanted, *([_CHANGE] if changes and _CHANGE in there else [])])
        except FileNotFoundError as error:
            raise LakeError(f"{self._root}/{file.path}: is gone before it was read", remedy=_AGAIN) from error
        except pa.ArrowException as error:
            why = str(error).splitlines()[0][:200]
            raise LakeError(f"{self._root}/{file.path}: is damaged ({why})", remedy=_AGAIN) from error
        for name in names:
            if name not in there:
                found = found.append_column(name, pa.repeat(pa.scalar(file.values[name]), found.num_rows))
        return _plain(found)

    def _ids_before(self, piece: TablePiece) -> Any:
        """Ids of the rows that a version took away; None where it only added."""
        if not piece.former:
            return None
        found = [self._table(file, [_ID])[_ID] for file in piece.former]
        return pa.chunked_array([chunk for column in found for chunk in column.chunks], pa.string())

    def _keys(self, rows: pa.Table) -> Any:
        """The key of each row as text: the value, or a JSON array of several."""
        parts = [self._part(rows[str(path[0])], path[1:]) for path in self._paths]
        if len(parts) == 1:
            return parts[0]
        quoted = [pc.replace_substring(pc.replace_substring(part, "\\", "\\\\"), '"', '\\"') for part in parts]
        whole = pc.binary_join_element_wise(*quoted, '","', null_handling="emit_null")
        return pc.binary_join_element_wise('["', whole, '"]', "", null_handling="emit_null")

    def _part(self, column: Any, path: FieldPath) -> Any:
        if not path:
            return column.cast(pa.string()).combine_chunks()
        found = typed(column.combine_chunks(), [TypedColumn("key", "foreign", path, "STRING")])
        return found.values["key"].combine_chunks()

    def records(self, rows: Iterator[Row]) -> list[str]:
        """The whole rows as JSON text, in order."""
        said, last = list[str](), None
        for row in rows:
            if last is None or last[0] != row.file:
                with open_file(self._root, row.file.path) as opened:
                    last = row.file, pq.ParquetFile(opened, coerce_int96_timestamp_unit="us").read()
            batch = last[1].slice(row.at, 1).combine_chunks().to_batches()[0]
            said.append(lines_of(batch, [name for name in self._as_json if name in batch.schema.names])[0].decode())
        return said


def _ranges(piece: TablePiece) -> Iterator[tuple[RowFile, int, int]]:
    """Files of a piece, each with the rows of it that are read."""
    whole = bool(piece.former or piece.changes)
    for file in piece.files:
        yield (file, 0, file.rows) if whole else (file, piece.begin, piece.end)


def _plain(found: pa.Table) -> pa.Table:
    """Texts as plain text, whatever the writer made of them, and times in microseconds."""
    fields = [
        pa.field(field.name, pa.timestamp("us", tz="UTC"))
        if field.name == _TIME
        else pa.field(field.name, pa.string())
        if pa.types.is_dictionary(field.type) or str(field.type) in ("large_string", "string_view")
        else field
        for field in found.schema
    ]
    return found.cast(pa.schema(fields))
