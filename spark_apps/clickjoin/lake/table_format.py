"""The format of a table, as its properties tell it (see schemas.format)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError

from clickjoin.model.errors import LakeError
from clickjoin.schemas import ALL
from clickjoin.schemas.format import FIRST, FORMAT, KEY

if TYPE_CHECKING:
    from deltalake import DeltaTable


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


def formats(root: str) -> dict[str, int]:
    """The format of every table in a lake's folder; 0 of one whose log cannot be read, as others say better.

    By handles of its own: what a program has opened is what its batches say they have seen. Errors: LakeError for a
    format that this program does not know.
    """
    from clickjoin.lake.delta_reader import DeltaReader

    delta, found = DeltaReader(root), dict[str, int]()
    for table in ALL:
        if delta.exists(table.name):
            try:
                found[table.name] = delta.format(table.name)
            except DeltaError:
                found[table.name] = 0
    return found


def lake_format(root: str) -> int:
    """The format of a lake: the oldest of its tables'; this program's own where there are none."""
    return min(filter(None, formats(root).values()), default=FORMAT)
