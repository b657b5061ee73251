"""Whether this program can work on a table: its format, as its properties tell it (schemas.format), its features."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from clickjoin.lake.location import location
from clickjoin.lake.table_features import require_features
from clickjoin.model.errors import LakeError
from clickjoin.model.places import is_on_s3
from clickjoin.schemas import ALL
from clickjoin.schemas.format import FIRST, FORMAT, KEY

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader


def format_of(table: DeltaTable, place: str) -> int:
    """The number of a table's format. Errors: LakeError for a property that is no number."""
    text = (table.metadata().configuration or {}).get(KEY)
    if text is None:
        return FIRST
    if not text.isascii() or not text.isdigit() or int(text) < FIRST:
        raise LakeError(
            f"{place}: its property {KEY} is {text!r}, which is no format",
            remedy=f"Set it back (ALTER TABLE … SET TBLPROPERTIES): {FORMAT} if this clickjoin has worked on it",
        )
    return int(text)


def require_known_format(table: DeltaTable, place: str) -> None:
    """Check that this program knows a table's format: it might keep to rules that no longer hold. Errors: LakeError."""
    number = format_of(table, place)
    if number > FORMAT:
        from clickjoin import __version__

        raise LakeError(
            f"{place}: is of format {number}, and clickjoin {__version__} knows formats up to {FORMAT}",
            remedy="Use the clickjoin that upgraded this lake, or a newer one; there is no way back but a backup",
        )


def require_fit(table: DeltaTable, place: str) -> None:
    """Check that this program can work on a table: its format, its features. Errors: LakeError."""
    require_known_format(table, place)
    require_features(table, place)


class Fitness:
    """What `require_fit` has found of the handles of a process: asked again where protocol or metadata changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[DeltaTable, int]] = {}
        self._facts: dict[str, tuple[Any, ...]] = {}

    def require(self, name: str, table: DeltaTable, place: str) -> None:
        """Check what a handle shows. Errors: LakeError, at each call while the table is not fit."""
        version, known = int(table.version()), self._known.get(name)
        if known is not None and known[0] is table and known[1] == version:
            return
        metadata = table.metadata()
        facts = (table.protocol(), metadata.id, metadata.configuration, table.schema())
        if self._facts.get(name) != facts:
            require_fit(table, place)
        self._known[name], self._facts[name] = (table, version), facts

    def forget(self, name: str) -> None:
        """Check a table again the next time: another may lie in its place."""
        self._known.pop(name, None)
        self._facts.pop(name, None)


def is_table(place: str, options: dict[str, str] | None) -> bool:
    """Whether there is a table at a path or URI."""
    if not is_on_s3(place):
        return DeltaTable.is_deltatable(place, options)
    # delta-rs holds Python's lock while it asks, and a store can be long in answering.
    files = location(place).listed("_delta_log")
    return any(file.path.endswith((".json", ".checkpoint.parquet")) for file in files)


def column_types(table: DeltaTable) -> dict[str, str]:
    """Column names and their Delta types."""
    return {f.name: str(f.type.type if isinstance(f.type, PrimitiveType) else f.type) for f in table.schema().fields}


def formats(root: str, known: DeltaReader | None = None) -> dict[str, int]:
    """The format of every table in a lake's folder; 0 of one whose log cannot be read, as others say better.

    By handles of its own, or those that `known` has looked at ahead: what a program has opened is what its batches say
    they have seen. Errors: LakeError for a format that this program does not know.
    """
    from clickjoin.lake.delta_reader import DeltaReader

    @cache
    def own() -> DeltaReader:
        delta = DeltaReader(root)
        delta.look_at([table.name for table in ALL])
        return delta

    found = dict[str, int]()
    for table in ALL:
        delta = known if known is not None and known.is_ahead(table.name) else own()
        if delta.exists(table.name):
            try:
                found[table.name] = delta.format(table.name)
            except DeltaError:
                found[table.name] = 0
    return found


def lake_format(root: str) -> int:
    """The format of a lake: the oldest of its tables'; this program's own where there are none."""
    return min(filter(None, formats(root).values()), default=FORMAT)
