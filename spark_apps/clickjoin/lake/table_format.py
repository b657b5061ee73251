"""Whether this program can work on a table: its format, as its properties tell it (schemas.format), its features."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from clickjoin.kernel.types import rows_type
from clickjoin.lake.location import location
from clickjoin.lake.table_features import require_features
from clickjoin.model.errors import LakeError
from clickjoin.model.places import is_on_s3
from clickjoin.schemas import ALL
from clickjoin.schemas.format import FORMAT, KEY

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader


_FROM_LOGS = (
    "Build it again from its logs: name a new folder as `lake` in the pipeline's file, then run `clickjoin init` and "
    "`clickjoin drain`; the old one stays readable by the release that made it"
)


def require_own_format(table: DeltaTable, place: str) -> None:
    """Check that a table is of this program's format. Errors: LakeError for an older one, a newer one, and for none."""
    text = (table.metadata().configuration or {}).get(KEY)
    if text == str(FORMAT):
        return
    from clickjoin import __version__

    known = f"clickjoin {__version__} works on format {FORMAT} alone"
    if text is None:
        raise LakeError(f"{place}: is of no format, having no property {KEY}, and {known}", remedy=_FROM_LOGS)
    if not re.fullmatch("[1-9][0-9]*", text):
        raise LakeError(
            f"{place}: its property {KEY} is {text!r}, which is no format, and {known}",
            remedy=f"Set it back (ALTER TABLE … SET TBLPROPERTIES): {FORMAT} if this clickjoin has worked on it",
        )
    newer = "Install a newer clickjoin"
    raise LakeError(f"{place}: is of format {text}, and {known}", remedy=newer if int(text) > FORMAT else _FROM_LOGS)


def require_fit(table: DeltaTable, place: str) -> None:
    """Check that this program can work on a table: its format, its features. Errors: LakeError."""
    require_own_format(table, place)
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
    return {field.name: _named(field.type) for field in table.schema().fields}


def _named(kind: Any) -> str:
    if isinstance(kind, PrimitiveType):
        return str(kind.type)
    fields = getattr(getattr(kind, "element_type", None), "fields", None)  # of an array of structs
    return rows_type({field.name: _named(field.type) for field in fields}) if fields else str(kind)


def tables_of_format(root: str, known: DeltaReader | None = None) -> dict[str, dict[str, str]]:
    """The tables in a lake's folder, each of this program's format, or one whose log cannot be read, and their columns.

    Columns by name with Delta's type; none where the log cannot be read. By handles of its own, or those that `known`
    has looked at ahead: what a program has opened is what its batches say they have seen. Errors: LakeError for another
    format.
    """
    from clickjoin.lake.delta_reader import DeltaReader

    @cache
    def own() -> DeltaReader:
        delta = DeltaReader(root)
        delta.look_at([table.name for table in ALL])
        return delta

    found: dict[str, dict[str, str]] = {}
    for table in ALL:
        delta = known if known is not None and known.is_ahead(table.name) else own()
        if delta.exists(table.name):
            found[table.name] = {}
            with suppress(DeltaError):  # others say better what is wrong with it
                found[table.name] = delta.require_fit(table.name)
    return found
