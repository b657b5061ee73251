"""Tables as they were at one version each: the files of their logs and of their data that this takes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable

from clickjoin.kernel.filesystem import filesystem, local_folder
from clickjoin.lake.readable import ReadableTables, readable
from clickjoin.lake.restored import mark
from clickjoin.lake.store_options import store_options
from clickjoin.lake.table_format import require_fit
from clickjoin.model.errors import LakeError
from clickjoin.model.places import folder_of

LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")


class Look(NamedTuple):
    """A table's newest version, and which log it is of: another table may have been put in its place."""

    version: int
    log: str


def look(root: str, name: str) -> Look | None:
    """A table as it is now, from its log's file names alone; None where there is no log."""
    try:
        versions = [int(found[1]) for found in map(_COMMIT.fullmatch, _names(root, name)) if found]
        return Look(max(versions), identity(root, name)) if versions else None
    except FileNotFoundError:
        return None


def identity(root: str, name: str) -> str:
    """What tells a table's log from another one that was put in its place. Errors: OSError where it cannot be seen."""
    folder = local_folder(f"{folder_of(root, name)}/{LOG}")
    return mark(root) if folder is None else str(folder.stat().st_ino)


def _names(root: str, name: str) -> list[str]:
    files, folder = filesystem(f"{folder_of(root, name)}/{LOG}")
    if not isinstance(files, pafs.LocalFileSystem):
        return [info.base_name for info in files.get_file_info(pafs.FileSelector(folder))]
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


class PinnedTables(ReadableTables):
    """The tables of a lake as they were at some versions, for reading only."""

    def __init__(self, root: str, versions: Mapping[str, int]) -> None:
        super().__init__(root)
        self._versions = versions

    def open(self, name: str) -> DeltaTable:
        """The table at its version."""
        if name not in self._open:
            self._open[name] = _at(self._root, name, self._versions[name])
        return self._open[name]


def _at(root: str, name: str, version: int) -> DeltaTable:
    with readable(root, name):
        table = DeltaTable(folder_of(root, name), version=version, storage_options=store_options(root))
    require_fit(table, folder_of(root, name))
    return table


def data_files(root: str, name: str, version: int) -> dict[str, int]:
    """Data files of a table at a version: bytes by path. Errors: LakeError, also for another format."""
    actions = pa.table(_at(root, name, version).get_add_actions(flatten=True))
    if not actions.num_rows:
        return {}
    paths = (unquote(path) for path in actions["path"].to_pylist())
    return dict(zip(paths, actions["size_bytes"].to_pylist(), strict=True))


def log_files(root: str, name: str, versions: Iterable[int]) -> list[str]:
    """Files of a table's log, by name, that it takes to read it at some versions, the highest being the newest then.

    Errors: LakeError where the log does not reach back to the lowest.
    """
    low, high = min(versions), max(versions)
    names = _names(root, name)
    parts: dict[int, list[str]] = {}
    for found in filter(None, map(_CHECKPOINT.fullmatch, names)):
        parts.setdefault(int(found[1]), []).append(found[0])
    whole = {version: files for version, files in parts.items() if len(files) == _parts(files)}
    first = max((version for version in whole if version <= low), default=0)
    commits = {int(found[1]): found[0] for found in map(_COMMIT.fullmatch, names) if found}
    if first not in whole and 0 not in commits:
        raise LakeError(
            f"{folder_of(root, name)}: its log does not reach back to version {low}",
            remedy="Run `clickjoin verify --repair`",
        )
    checkpoints = [file for version, files in whole.items() if first <= version <= high for file in files]
    return sorted([*checkpoints, *(file for version, file in commits.items() if first <= version <= high)])


def _parts(files: list[str]) -> int:
    found = _CHECKPOINT.fullmatch(files[0])
    return int(found[2] or 1) if found else 1


def require_version(root: str, name: str, version: int, files: int) -> None:
    """Check that the newest version of a table is this one, and names so many files. Errors: LakeError."""
    with readable(root, name):
        table = DeltaTable(folder_of(root, name), storage_options=store_options(root))
    require_fit(table, folder_of(root, name))
    found = pa.table(table.get_add_actions(flatten=True)).num_rows
    if (int(table.version()), found) != (version, files):
        raise LakeError(
            f"{folder_of(root, name)}: is at version {table.version()} with {found} files, not at {version} with "
            f"{files}",
            remedy="Take another backup, or restore another one",
        )
