"""A table that someone else writes: opened, and refused where its files do not say what its rows are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from clickjoin.lake.readable import gist
from clickjoin.model.errors import SourceError

_WHOLE = ("byte", "short", "integer", "long")
_NO_TABLE = re.compile("no log files|not a delta table|does not exist", re.IGNORECASE)


def opened(path: str) -> DeltaTable | None:
    """The table at a path as it is now; None where none is. Errors: SourceError."""
    try:
        return DeltaTable(path)
    except TableNotFoundError:
        return None
    except DeltaError as error:
        if _NO_TABLE.search(str(error)):
            return None
        raise SourceError(
            f"{path}: cannot be read as a Delta table ({gist(str(error))})", remedy="Restore its log"
        ) from error


def typed_value(kind: str, value: Any) -> Any:
    """A partition's value as JSON has it, by the Delta type of its column."""
    if not isinstance(value, str):
        return value
    if kind in _WHOLE:
        return int(value)
    if kind in ("float", "double"):
        return float(value)
    return value == "true" if kind == "boolean" else value


def require_plain(path: str, settings: Mapping[str, str | None]) -> None:
    """Check that files have the names of the columns. Errors: SourceError."""
    if (settings.get("delta.columnMapping.mode") or "none") != "none":
        raise SourceError(
            f"{path}: maps its columns' names (delta.columnMapping.mode), so that its files have others",
            remedy="Copy it to a table without column mapping, and read that",
        )


def vectors(path: str) -> SourceError:
    """The error of a table with deletion vectors."""
    return SourceError(
        f"{path}: has deletion vectors: its files hold rows that the table does not",
        remedy="Set delta.enableDeletionVectors to false and run REORG TABLE … APPLY (PURGE)",
    )


def require_whole_files(table: DeltaTable, path: str) -> None:
    """Check that a data file's rows are the table's rows. Errors: SourceError."""
    if "deletionVectors" in (table.protocol().reader_features or ()):
        raise vectors(path)
