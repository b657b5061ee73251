"""The events of planned splits, with their keys: rows of the output that no batch before had, in just these columns.

A version that rewrote files (a repair, a rebuilt date) holds events of before again: those are known by their ids and
times, and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clickjoin.kernel.filesystem import open_file
from clickjoin.kernel.typed_columns.columns import typed
from clickjoin.lake.others_table import opened
from clickjoin.model.errors import LakeError
from clickjoin.model.field_path import TypedColumn
from clickjoin.sources.delta.state import pieces_of

if TYPE_CHECKING:
    from clickjoin.kernel.table_rows import RowFile, TablePiece
    from clickjoin.model.field_path import FieldPath
    from clickjoin.model.split import Split

_ID, _TIME, _CHANGE = "event_id", "event_time", "_change_type"
_AGAIN = "Restore it; or run `clickjoin process --rebuild`, which begins again from the whole output"


@dataclass(frozen=True)
class Events:
    """Ids, times (microseconds) and keys (null: none) of events, and how many rows were left out (`known`)."""

    ids: Any
    times: Any
    keys: Any
    known: int

    def __len__(self) -> int:
        return len(self.ids)


class EventReader:
    """Reads events of the output at `root`; `paths`: column, and path in it, of each part of the key."""

    def __init__(self, root: str, paths: Sequence[FieldPath]) -> None:
        self._root, self._paths = root, tuple(paths)
        self._columns = list(dict.fromkeys([_ID, _TIME, *(str(path[0]) for path in paths)]))

    def read(self, splits: Sequence[Split]) -> Events:
        """All events of some splits. Errors: LakeError for rows that cannot be read, or that were read before."""
        parts, known = list[pa.Table](), 0
        for piece in (piece for split in splits for piece in pieces_of(split)):
            if piece.lost:
                raise LakeError(piece.lost, remedy=_AGAIN)
            before = self._known_before(piece)
            for file, low, high in _ranges(piece):
                found = self._file(file, low, high, changes=piece.changes)
                if before is not None:
                    new = found.filter(pc.invert(pc.is_in(_named(found), value_set=before)))
                    known += found.num_rows - new.num_rows
                    found = new
                parts.append(found)
        whole = pa.concat_tables(parts, promote_options="default") if parts else self._none()
        times = np.asarray(whole[_TIME].cast(pa.int64()))
        return Events(whole[_ID].combine_chunks(), times, keys_of(whole, self._paths), known)

    def _none(self) -> pa.Table:
        types = {_TIME: pa.timestamp("us", tz="UTC")}
        return pa.table({name: pa.array([], types.get(name, pa.string())) for name in self._columns})

    def _file(self, file: RowFile, low: int, high: int, *, changes: bool) -> pa.Table:
        """Rows [low, high) of a file, of changes those that were inserted."""
        found = self._table(file, self._columns, changes=changes).slice(low, high - low)
        if changes and _CHANGE in found.column_names:
            found = found.filter(pc.equal(found[_CHANGE], "insert"))
        return found.select(self._columns)

    def _table(self, file: RowFile, names: Sequence[str], *, changes: bool = False) -> pa.Table:
        try:
            with open_file(self._root, file.path) as opened:
                parquet = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
                there = set(parquet.schema_arrow.names)
                self._require_columns(name for name in names if name not in there and name not in file.values)
                wanted = [name for name in names if name in there]
                found = parquet.read(columns=[*wanted, *([_CHANGE] if changes and _CHANGE in there else [])])
        except FileNotFoundError as error:
            raise LakeError(f"{self._root}/{file.path}: is gone before it was read", remedy=_AGAIN) from error
        except pa.ArrowException as error:
            why = str(error).splitlines()[0][:200]
            raise LakeError(f"{self._root}/{file.path}: is damaged ({why})", remedy=_AGAIN) from error
        for name in names:
            if name not in there:
                value = pa.scalar(file.values.get(name))
                found = found.append_column(name, pa.repeat(value, found.num_rows))
        return plain(found)

    def _require_columns(self, missing: Iterable[str]) -> None:
        """A file from before a column came to the table lacks it: its rows have none there."""
        for name in missing:
            table = opened(self._root)
            there = [field.name for field in table.schema().fields] if table else []
            if name not in there:
                raise LakeError(
                    f"{self._root}: has no column {name}; it has {', '.join(there)}",
                    remedy="Name one of them in process.key, or a path in one that holds records",
                )

    def _known_before(self, piece: TablePiece) -> Any:
        """What the rows that a version took away are known by; None where it only added."""
        if not piece.former:
            return None
        return pa.concat_arrays([_named(self._table(file, [_ID, _TIME])) for file in piece.former])


def keys_of(rows: pa.Table, paths: Sequence[FieldPath]) -> Any:
    """The key of each row as text: the value, or a JSON array of several."""
    parts = [_part(str(path[0]), rows[str(path[0])], path[1:]) for path in paths]
    if len(parts) == 1:
        return parts[0]
    quoted = [pc.replace_substring(pc.replace_substring(part, "\\", "\\\\"), '"', '\\"') for part in parts]
    whole = pc.binary_join_element_wise(*quoted, '","', null_handling="emit_null")
    return pc.binary_join_element_wise('["', whole, '"]', "", null_handling="emit_null")


def _part(name: str, column: Any, path: FieldPath) -> Any:
    if not path or pa.types.is_null(column.type):
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0, column.type))  # -0.0 is 0.0
        try:
            return column.cast(pa.string()).combine_chunks()
        except pa.ArrowException as error:
            raise LakeError(
                f"column {name} ({column.type}) is no key: {str(error)[:200]}",
                remedy="Fix process.key: name a column of text, numbers or times",
            ) from error
    found = typed(column.combine_chunks(), [TypedColumn("key", "foreign", path, "STRING")])
    return found.values["key"].combine_chunks()


def _named(rows: pa.Table) -> Any:
    """What events are known by: the id with the time, as one text."""
    times = rows[_TIME].cast(pa.int64()).cast(pa.string())
    return pc.binary_join_element_wise(rows[_ID], times, "/").combine_chunks()


def _ranges(piece: TablePiece) -> Iterator[tuple[RowFile, int, int]]:
    """Files of a piece, each with the rows of it that are read."""
    whole = bool(piece.former or piece.changes)
    for file in piece.files:
        yield (file, 0, file.rows) if whole else (file, piece.begin, piece.end)


def plain(found: pa.Table) -> pa.Table:
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
