"""Which files a glob finds, by scanning folders; nothing is opened."""

from __future__ import annotations

import errno
import fnmatch
import os
import re
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from clickjoin.kernel.file_bytes import AllowedFolders
from clickjoin.model.split import Problem
from clickjoin.sources.files.allowed_folders import base_of

_MARKS = _DELTA, _HUDI, _ICEBERG = "_delta_log", ".hoodie", "metadata"


@dataclass(frozen=True, slots=True)
class LogFile:
    """A regular file as stat saw it. `matched`: the glob names it; others only lie in the same folder."""

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    matched: bool

    @property
    def key(self) -> tuple[int, int]:
        """What stays the same when a file is renamed."""
        return self.device, self.inode


@dataclass(frozen=True)
class Listing:
    """Files by path. `failed` folders and files could not be looked at: nothing is known about what lies there."""

    files: tuple[LogFile, ...]
    failed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    missing: bool = False

    def hides(self, path: str) -> bool:
        """Whether a path lies where nothing could be seen."""
        return any(path == place or path.startswith(f"{place}/") for place in self.failed)


def list_files(
    pattern: str, inodes: Container[int] = (), *, everything: bool = False, fence: AllowedFolders | None = None
) -> Listing:
    """Files that a glob names, and of the others in their folders those with a known inode, or all.

    As in a shell, `*` names no hidden files; `**` is any number of folders, without following links. A file that
    cannot be looked at is a problem; a base folder that does not exist is `missing`. Errors: ConfigError where a folder
    or a file that the glob names lies outside of the fence.
    """
    base, parts = base_of(pattern)
    walk = _Walk(inodes, everything, fence)
    if above := _table_above(base):
        return Listing((), (base,), (above,))
    walk.visit(base, parts)
    if walk.gone == base:
        problem = Problem("missing", base, f"folder {base} does not exist; create it, or correct the source's path")
        return Listing((), problems=(problem,), missing=True)
    files = tuple(walk.files[path] for path in sorted(walk.files))
    return Listing(files, tuple(walk.failed), tuple(walk.problems))


def _of_table(folder: str, kind: str) -> Problem:
    """Files of a table are not its rows: some are of versions that it no longer has."""
    remedy = "read it with `kind: delta`" if kind == "a Delta table" else "export its rows as files of their own"
    detail = f"{folder} is {kind}, and its files hold rows too that it has removed or replaced: {remedy}"
    return Problem("unreadable", folder, detail)


def _table_above(base: str) -> Problem | None:
    """That a glob starts from inside of a table, such as from one of its partitions or the folder of its data."""
    for folder in Path(base).parents:
        if kind := _kind_of_table(folder, {name for name in _MARKS if (folder / name).is_dir()}):
            return _of_table(str(folder), kind)
    return None


def _kind_of_table(folder: Path, names: Container[str]) -> str:
    """What table of another engine a folder is, by names that lie in it; empty where it is none."""
    if _DELTA in names:
        return "a Delta table"
    if _HUDI in names:
        return "a Hudi table"
    is_iceberg = _ICEBERG in names and next((folder / _ICEBERG).glob("*.metadata.json"), None)
    return "an Iceberg table" if is_iceberg else ""


def unreadable(path: str, error: OSError) -> Problem:
    """A file or folder that cannot be read, with the system's own words."""
    return Problem("unreadable", path, f"{path} cannot be read ({error.strerror}); check its permissions and its disk")


@lru_cache(maxsize=256)
def _regex(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part))


def names(part: str, name: str) -> bool:
    """Whether one part of a glob names a file or folder, as in a shell."""
    return (not name.startswith(".") or part.startswith(".")) and bool(_regex(part).match(name))


class _Walk:
    def __init__(self, inodes: Container[int], everything: bool, fence: AllowedFolders | None) -> None:
        self.inodes, self.everything, self.fence = inodes, everything, fence
        self.files: dict[str, LogFile] = {}
        self.failed: list[str] = []
        self.problems: list[Problem] = []
        self.gone = ""

    def visit(self, folder: str, parts: tuple[str, ...]) -> None:
        entries = self._entries(folder)
        if entries is None:
            return
        if len(parts) == 1:
            for entry in entries:
                self._file(entry, names(parts[0], entry.name))
        elif parts[0] == "**":
            self.visit(folder, parts[1:])
            self._below(entries, "*", parts, links=False)
        else:
            self._below(entries, parts[0], parts[1:], links=True)

    def _entries(self, folder: str) -> list[os.DirEntry[str]] | None:
        """What lies in a folder; None where that cannot be seen. Errors: ConfigError."""
        if self.fence and not self.fence.own:
            self.fence.require(folder)
        elif not self._open(folder):
            return None
        try:
            with os.scandir(folder) as found:
                entries = list(found)
            if kind := _kind_of_table(Path(folder), {entry.name for entry in entries}):
                self.failed.append(folder)
                self.problems.append(_of_table(folder, kind))
                return None
            return entries
        except (FileNotFoundError, NotADirectoryError):
            self.gone = folder
        except OSError as error:
            if error.errno == errno.ELOOP:
                self.gone = folder
            self._fail(folder, error)
        return None

    def _below(self, entries: list[os.DirEntry[str]], name: str, parts: tuple[str, ...], *, links: bool) -> None:
        for entry in entries:
            if names(name, entry.name) and self._is_folder(entry, links=links):
                self.visit(entry.path, parts)

    def _is_folder(self, entry: os.DirEntry[str], *, links: bool) -> bool:
        try:
            return entry.is_dir(follow_symlinks=links)
        except OSError as error:
            self._fail(entry.path, error)
            return False

    def _file(self, entry: os.DirEntry[str], matched: bool) -> None:
        known = self.files.get(entry.path)
        if known and (known.matched or not matched):
            return
        if not (matched or self.everything or entry.inode() in self.inodes):
            return
        if not self._let_in(entry, matched):
            return
        try:
            if not entry.is_file():
                return
            stat = entry.stat()
        except FileNotFoundError:
            return
        except OSError as error:
            self._fail(entry.path, error)
            return
        self.files[entry.path] = LogFile(
            entry.path, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, matched
        )  # fmt: skip

    def _let_in(self, entry: os.DirEntry[str], matched: bool) -> bool:
        """Whether a file may be read; one that the glob names and that may not is an error."""
        if not self.fence:
            return True
        if self.fence.own:
            return not entry.is_symlink() or self._open(entry.path)
        if matched:
            self.fence.require(entry.path)
        return self.fence.holds(entry.path)

    def _open(self, path: str) -> bool:
        """Whether a place of an own source may be read; that a link leads to where keys are kept is a problem."""
        if self.fence is None or self.fence.holds(path):
            return True
        self.failed.append(path)
        real = os.path.realpath(path)
        detail = f"{path} leads to {real}, where passwords and keys are kept: it is not read; remove the link"
        self.problems.append(Problem("unreadable", path, detail))
        return False

    def _fail(self, path: str, error: OSError) -> None:
        if error.errno != errno.ELOOP:  # links in a circle hide nothing, whatever else is wrong with them
            self.failed.append(path)
        self.problems.append(unreadable(path, error))
