"""How far a table has been read, and what a batch reads of it: what this source's offsets and splits say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from clickjoin.kernel.table_rows import RowFile, TablePiece
from clickjoin.model.split import SourceOffset, Split

_UNPACKED = 8  # times as long as Parquet, for sharing out work


@dataclass(frozen=True)
class TablePosition:
    """The next row that is to be planned: row `row` of version `version`, of one incarnation of a table.

    `partition`: the table's id; with a + for each time that the same table came back with another past. `life`: which
    incarnation of what lies at the path it is. `whole`: of this version all files of the table are read, not just
    those that it added. `read` and `mark`: the newest entry of the log that was looked at (-1: none), and its
    fingerprint. `at`: when that was committed, seconds since 1970.
    """

    partition: str
    life: int
    version: int
    row: int = 0
    whole: bool = False
    read: int = -1
    mark: str = ""
    at: float = 0

    @classmethod
    def of(cls, offset: SourceOffset) -> TablePosition:
        """What an offset of this source says."""
        return cls(offset.partition, **offset.payload)

    def to_offset(self) -> SourceOffset:
        """As an offset for the engine to keep."""
        return SourceOffset(self.partition, {name: value for name, value in vars(self).items() if name != "partition"})

    def after(self, version: int, mark: str, at: float) -> TablePosition:
        """The position behind a version that was read whole."""
        return replace(self, version=version + 1, row=0, whole=False, read=version, mark=mark, at=max(at, self.at))


def newest(offsets: Mapping[str, SourceOffset]) -> TablePosition | None:
    """The position in the incarnation that was read last."""
    return max(map(TablePosition.of, offsets.values()), key=lambda position: position.life, default=None)


def split_of(position: TablePosition, path: str, pieces: Iterable[TablePiece]) -> Split:
    """Pieces of one incarnation as a split for the engine to plan."""
    held = list(pieces)
    size = sum(file.size * _share(piece) for piece in held for file in (*piece.files, *piece.former))
    payload = {"pieces": [_plain(piece) for piece in held]}
    return Split(position.partition, payload, path, sum(map(rows_of, held)), int(size * _UNPACKED))


def pieces_of(split: Split) -> list[TablePiece]:
    """The pieces that a split of this source holds."""
    return [
        TablePiece(**item | {name: tuple(RowFile(*file) for file in item[name]) for name in ("files", "former")})
        for item in split.payload["pieces"]
    ]


def rows_of(piece: TablePiece) -> int:
    """How many rows a piece has, at most."""
    return piece.end - piece.begin


def _share(piece: TablePiece) -> float:
    whole = sum(file.rows for file in piece.files)
    return rows_of(piece) / whole if whole else 1


def _plain(piece: TablePiece) -> dict[str, Any]:
    return piece._asdict() | {name: [list(file) for file in getattr(piece, name)] for name in ("files", "former")}


def absent_text(kind: str, path: str) -> str:
    """What is said of a table that is not there; of an output also how the file may have it wrong."""
    if kind != "not-begun":
        return f"{path}: no Delta table lies there"
    other = (
        "write `output: deduplicated` if that pipeline is of one stream"
        if path.endswith("/joined")
        else "leave `output` out if that pipeline joins two"
    )
    return f"{path}: no Delta table lies there yet; start that pipeline, or {other}"
