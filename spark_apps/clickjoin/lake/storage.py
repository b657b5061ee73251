"""Files below a table's folder: which are there, how long they are, and when the store says they were written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow.fs as pafs

LOG = "_delta_log"


class Stored(NamedTuple):
    """A file: its path below a folder, bytes, and when it was last written (seconds since 1970, by the store)."""

    path: str
    size: int
    at: float


def stored(root: str, path: str) -> Stored | None:
    """One file of a folder; None where it is not there."""
    system, base = _place(root)
    if isinstance(system, pafs.LocalFileSystem):
        return _local(f"{base}/{path}", path)
    info = system.get_file_info(f"{base}/{path}")
    return _stored(info, path) if info.type == pafs.FileType.File else None


def listed(root: str, folder: str = "") -> list[Stored]:
    """All files below a folder, or below a folder of it, but for hidden folders; none where it is not there."""
    system, base = _place(root)
    start = f"{base}/{folder}".rstrip("/")
    if isinstance(system, pafs.LocalFileSystem):
        return [file for name in _names(start) if (file := _local(name, name[len(base) :].lstrip("/")))]
    found = system.get_file_info(pafs.FileSelector(start, allow_not_found=True, recursive=True))
    files = [info for info in found if info.type == pafs.FileType.File]
    shown = [info for info in files if not any(map(_is_hidden, info.path[len(start) :].split("/")[:-1]))]
    return [_stored(info, info.path.removeprefix(base).lstrip("/")) for info in shown]


def absent(root: str, sizes: Mapping[str, int]) -> list[str]:
    """Those of some files (path to bytes) that are not there, or are of another size, each with what is wrong."""
    found = {path: stored(root, path) for path in sizes}
    return [
        path if file is None else f"{path} ({file.size} bytes, not {sizes[path]})"
        for path, file in found.items()
        if file is None or file.size != sizes[path]
    ]


def remove(root: str, paths: Iterable[str]) -> None:
    """Remove files of a folder; one that is gone already is no error."""
    system, base = _place(root)
    for path in paths:
        try:
            system.delete_file(f"{base}/{path}")
        except FileNotFoundError:
            continue


def write(root: str, path: str, data: bytes) -> None:
    """Write a file of a folder, over the one that is there."""
    system, base = _place(root)
    with system.open_output_stream(f"{base}/{path}") as out:
        out.write(data)


def _place(root: str) -> tuple[pafs.FileSystem, str]:
    system, base = pafs.FileSystem.from_uri(root)
    return system, base.rstrip("/")


def _local(name: str, path: str) -> Stored | None:
    # Not by Arrow: where a process's clock is faked (libfaketime), it sees files' times faked too.
    try:
        found = Path(name).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stored(path, found.st_size, found.st_mtime)


def _stored(info: pafs.FileInfo, path: str) -> Stored:
    return Stored(path, info.size, info.mtime_ns / 1e9)


def _names(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        yield from (f"{place}/{name}" for name in names)


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))
