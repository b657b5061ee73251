"""Whole tables as folders: put aside, moved into place, removed."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

if TYPE_CHECKING:
    from clickjoin.lake.small import SmallTables


def remove(small: SmallTables, name: str) -> None:
    """Remove a table and all its files, if it is there."""
    files, path = pafs.FileSystem.from_uri(small.path(name))
    if files.get_file_info(path).type == pafs.FileType.Directory:
        files.delete_dir(path)
    small.forget(name)


def put_aside(small: SmallTables, name: str, now: datetime) -> str:
    """Give a table another name, and return where it is then."""
    aside = f"{name}.put-aside-{now:%Y%m%dT%H%M%SZ}"
    rename(small, name, aside)
    return small.path(aside)


def rename(small: SmallTables, name: str, to: str) -> None:
    """Give a table another name: on a local disk in one step."""
    files, path = pafs.FileSystem.from_uri(small.path(name))
    files.move(path, pafs.FileSystem.from_uri(small.path(to))[1])
    small.forget(name)
    small.forget(to)
