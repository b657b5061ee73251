"""Whole tables as folders: moved aside, moved into place, removed.

On a local disk a rename is one step. On an object store each file is copied and then removed, in an order in which a
reader finds the whole table or none: never one that ends with an older version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from clickjoin.kernel.filesystem import filesystem
from clickjoin.lake.location import remove_markers

if TYPE_CHECKING:
    from clickjoin.lake.delta_tables import DeltaTables

_WORKERS = 16
_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint\b.*")
_LOG = "_delta_log/"


def remove(delta: DeltaTables, name: str) -> None:
    """Remove a table and all its files, if it is there."""
    files, path = filesystem(delta.path(name))
    if isinstance(files, pafs.LocalFileSystem):
        if files.get_file_info(path).type == pafs.FileType.Directory:
            files.delete_dir(path)
    else:
        _remove(files, path)
        remove_markers(delta.path(name))
    delta.forget(name)


def put_aside(delta: DeltaTables, name: str, now: datetime) -> str:
    """Give a table another name, and return where it is then."""
    aside = f"{name}.put-aside-{now:%Y%m%dT%H%M%SZ}"
    rename(delta, name, aside)
    return delta.path(aside)


def rename(delta: DeltaTables, name: str, to: str) -> None:
    """Give a table another name: on a local disk in one step, on an object store as the module says."""
    files, path = filesystem(delta.path(name))
    target = filesystem(delta.path(to))[1]
    if isinstance(files, pafs.LocalFileSystem):
        files.move(path, target)
    else:
        _copy(files, path, target)
        _remove(files, path)
        remove_markers(delta.path(name))
    delta.forget(name)
    delta.forget(to)


def _copy(files: pafs.FileSystem, path: str, target: str) -> None:
    """Copy a table: its newest checkpoint last but for the pointer, or its first commit where it has none."""
    for names in in_order_of_making(_names(files, path)):
        _each(lambda name: files.copy_file(f"{path}/{name}", f"{target}/{name}"), names)


def _remove(files: pafs.FileSystem, path: str) -> None:
    for names in in_order_of_removing(_names(files, path)):
        _each(lambda name: files.delete_file(f"{path}/{name}"), names)


def in_order_of_making(names: Sequence[str]) -> list[list[str]]:
    """A table's files in groups to be written one after the other: it can be read once its log can be, and not before.

    Pure. What a reader begins with comes last: the newest checkpoint, or the first commit, and then the pointer.
    """
    return [group for group in reversed(in_order_of_removing(names)) if group]


def in_order_of_removing(names: Sequence[str]) -> list[list[str]]:
    """A table's files in groups to be removed one after the other: first what a reader of its log begins with.

    Pure. Without its pointer, first commit and checkpoints, from the oldest on, no reader makes an older table of it.
    """
    log = [name for name in names if name.startswith(_LOG)]
    commits = sorted(name for name in log if _COMMIT.fullmatch(name))
    checkpoints = sorted(name for name in log if _CHECKPOINT.fullmatch(name))
    pointer = [name for name in log if name == f"{_LOG}_last_checkpoint"]
    known = {*commits, *checkpoints, *pointer}
    rest = [name for name in log if name not in known]
    data = [name for name in names if not name.startswith(_LOG)]
    return [pointer, commits[:1], *([name] for name in checkpoints), commits[1:], rest, data]


def _names(files: pafs.FileSystem, path: str) -> list[str]:
    found = files.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True))
    return [info.path.removeprefix(f"{path}/") for info in found if info.type == pafs.FileType.File]


def _each(do: Callable[[str], object], names: Sequence[str]) -> None:
    with ThreadPoolExecutor(_WORKERS) as pool:
        list(pool.map(do, names))


def by_table(paths: Sequence[str], order: Callable[[Sequence[str]], list[list[str]]]) -> Iterator[list[str]]:
    """Groups of files in which each table's are made or removed, one group after the other."""
    tables: dict[str, list[str]] = {}
    for path in paths:
        folder, _, rest = path.partition("/")
        tables.setdefault(folder if rest else "", []).append(rest or path)
    for folder, names in sorted(tables.items()):
        yield from ([f"{folder}/{name}".lstrip("/") for name in group] for group in order(names) if group)
