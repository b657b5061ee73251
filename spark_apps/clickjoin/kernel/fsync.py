"""Flushing files and folders of local tables to disk. Runs on executors, which need no clickjoin.

delta-rs and Parquet writers leave their files in the page cache: a power cut takes what was acknowledged. An object
store answers once its copies are safe, so there is nothing to flush there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow.fs as pafs

from clickjoin.kernel.filesystem import filesystem

_RECENT = 64  # commits


def local_folder(root: str) -> Path | None:
    """The folder of a table (path or URI); None where it does not lie on a local file system."""
    system, path = filesystem(root)
    return Path(path) if isinstance(system, pafs.LocalFileSystem) else None


def flush(paths: Iterable[Path]) -> None:
    """Return once these files and folders are on disk. Errors: OSError."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def flush_data(root: Path, *names: str) -> None:
    """Return once data files and their folders, up to the table's own, are on disk."""
    flush(root / name for name in names)
    flush(dict.fromkeys(root / folder for name in names for folder in Path(name).parents))


def flush_commit(root: Path, version: int) -> None:
    """Return once a commit is on disk, and the checkpoint that its writer may have made of it."""
    log = root / "_delta_log"
    checkpoint = log / f"{version:020d}.checkpoint.parquet"
    made = [checkpoint, log / "_last_checkpoint"] if checkpoint.exists() else []
    flush([log / f"{version:020d}.json", *(path for path in made if path.exists()), log])


def flush_recent(root: Path, version: int) -> None:
    """Return once the newest commits up to a version are on disk: one of them may be of a process that was killed."""
    log = root / "_delta_log"
    names = (log / f"{number:020d}.json" for number in range(max(version - _RECENT, 0), version + 1))
    flush([*(path for path in names if path.exists()), log])
