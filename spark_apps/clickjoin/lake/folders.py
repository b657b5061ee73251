"""Whole tables as folders: moved aside, moved into place, removed."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

if TYPE_CHECKING:
    from clickjoin.lake.delta_tables import DeltaTables


def remove(delta: DeltaTables, name: str) -> None:
    """Remove a table and all its files, if it is there."""
    files, path = pafs.FileSystem.from_uri(delta.path(name))
    if files.get_file_info(path).type == pafs.FileType.Directory:
        files.delete_dir(path)
    delta.forget(name)


def put_aside(delta: DeltaTables, name: str, now: datetime) -> str:
    """Give a table another name, and return where it is then."""
    aside = f"{name}.put-aside-{now:%Y%m%dT%H%M%SZ}"
    rename(delta, name, aside)
    return delta.path(aside)


def rename(delta: DeltaTables, name: str, to: str) -> None:
    """Give a table another name: on a local disk in one step."""
    files, path = pafs.FileSystem.from_uri(delta.path(name))
    files.move(path, pafs.FileSystem.from_uri(delta.path(to))[1])
    delta.forget(name)
    delta.forget(to)
