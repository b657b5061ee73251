"""The port of a lake's files: which are there, how long they are, and when the store says they were written."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow.fs as pafs

from clickjoin.kernel.filesystem import filesystem

LOG = "_delta_log"
_AT_ONCE = 16  # looks at an object store


class Stored(NamedTuple):
    """A file: its path below a folder, bytes, and when it was last written (seconds since 1970, by the store)."""

    path: str
    size: int
    at: float


class Location(Protocol):
    """A folder of files, wherever it lies. Paths are relative to it."""

    def stored(self, path: str) -> Stored | None:
        """One file; None where it is not there."""
        ...

    def listed(self, folder: str = "") -> list[Stored]:
        """All files below it, or below a folder of it, but for hidden folders; none where it is not there."""
        ...

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files; one that is gone already is no error."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write a file, over the one that is there."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Put a file in the place of the one that is there: whole, in one step, and durably."""
        ...

    def read(self, path: str) -> bytes | None:
        """What a file holds; None where it is not there."""
        ...

    def move(self, path: str, to: str) -> None:
        """Give a file another name, over the file that has it: on a local disk in one step."""
        ...


def location(root: str) -> Location:
    """The folder at a path or URI."""
    system, base = filesystem(root)
    kind = LocalFolder if isinstance(system, pafs.LocalFileSystem) else ArrowFolder
    return kind(system, base.rstrip("/"))


def remove_markers(root: str) -> None:
    """Remove empty objects that stand for folders, below a place on an object store and its own, inner ones first.

    Arrow leaves them where it has removed files; what else lies there goes too.
    """
    files, base = filesystem(root)
    left = files.get_file_info(pafs.FileSelector(base, recursive=True, allow_not_found=True))
    for folder in sorted((info.path for info in left), key=len, reverse=True):
        files.delete_dir(folder)
    if files.get_file_info(base).type == pafs.FileType.Directory:
        files.delete_dir(base)


def absent(folder: Location, sizes: Mapping[str, int]) -> list[str]:
    """Those of some files (path to bytes) that are not there, or are of another size, each with what is wrong."""
    if isinstance(folder, LocalFolder) or len(sizes) == 1:
        files = {path: folder.stored(path) for path in sizes}
    else:  # each look is a request
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            files = dict(zip(sizes, pool.map(folder.stored, sizes), strict=True))
    return [
        path if file is None else f"{path} ({file.size} bytes, not {sizes[path]})"
        for path, file in files.items()
        if file is None or file.size != sizes[path]
    ]


class ArrowFolder:
    """A folder of any store that Arrow knows."""

    def __init__(self, system: pafs.FileSystem, base: str) -> None:
        self._system, self._base = system, base

    def stored(self, path: str) -> Stored | None:
        """See Location."""
        info = self._system.get_file_info(f"{self._base}/{path}")
        return _stored(info, path) if info.type == pafs.FileType.File else None

    def listed(self, folder: str = "") -> list[Stored]:
        """See Location."""
        start = f"{self._base}/{folder}".rstrip("/")
        infos = self._system.get_file_info(pafs.FileSelector(start, allow_not_found=True, recursive=True))
        files = [info for info in infos if info.type == pafs.FileType.File]
        shown = [info for info in files if not any(map(_is_hidden, info.path[len(start) :].split("/")[:-1]))]
        return [_stored(info, info.path.removeprefix(self._base).lstrip("/")) for info in shown]

    def remove(self, paths: Iterable[str]) -> None:
        """See Location."""
        for path in paths:
            try:
                self._system.delete_file(f"{self._base}/{path}")
            except FileNotFoundError:
                continue

    def write(self, path: str, data: bytes) -> None:
        """See Location."""
        with self._system.open_output_stream(f"{self._base}/{path}") as out:
            out.write(data)

    def replace(self, path: str, data: bytes) -> None:
        """See Location: an object store answers once what it was given is whole and durable."""
        self.write(path, data)

    def read(self, path: str) -> bytes | None:
        """See Location."""
        try:
            with self._system.open_input_stream(f"{self._base}/{path}") as file:
                return bytes(file.read())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def move(self, path: str, to: str) -> None:
        """See Location."""
        self._system.move(f"{self._base}/{path}", f"{self._base}/{to}")


class LocalFolder(ArrowFolder):
    """A folder of a local disk. Not by Arrow: under libfaketime it sees files' times faked as well."""

    def stored(self, path: str) -> Stored | None:
        """See Location."""
        try:
            info = Path(f"{self._base}/{path}").stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Stored(path, info.st_size, info.st_mtime)

    def replace(self, path: str, data: bytes) -> None:
        """See Location."""
        file = Path(f"{self._base}/{path}")
        beside = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        with beside.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)

    def listed(self, folder: str = "") -> list[Stored]:
        """See Location."""
        start = f"{self._base}/{folder}".rstrip("/")
        return [file for name in _names(start) if (file := self.stored(name[len(self._base) :].lstrip("/")))]


def _stored(info: pafs.FileInfo, path: str) -> Stored:
    return Stored(path, info.size, info.mtime_ns / 1e9)


def _names(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        yield from (f"{place}/{name}" for name in names)


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))
