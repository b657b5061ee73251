"""Copying files so that each is there whole or not at all, flushed to disk, and as private as it was."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from clickjoin.model.errors import ConfigError, LakeError

_BLOCK = 1 << 20


class Vanished(Exception):
    """A file that was to be copied is gone."""


@contextmanager
def written_to(folder: Path, remedy: str) -> Iterator[None]:
    """Write to a folder in here. Errors: LakeError, with file and remedy, where a disk is full or refuses."""
    try:
        yield
    except OSError as error:
        place = error.filename2 or error.filename or folder
        raise LakeError(f"{place}: cannot be written or read ({error.strerror or error})", remedy=remedy) from error


@contextmanager
def alone(place: Path, what: str) -> Iterator[None]:
    """Hold a lock file for as long as the block runs. Errors: ConfigError where another process holds it."""
    handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise ConfigError(f"{place.parent}: {what} is under way", remedy="Wait until it has ended") from error
    try:
        yield
    finally:
        os.close(handle)


def copy(source: Path, target: Path) -> tuple[int, str]:
    """Copy a file with its times and its permissions; returns bytes and SHA-256. Errors: Vanished, OSError."""
    beside = target.with_name(f"{target.name}.copying")
    try:
        opened = source.open("rb")
    except FileNotFoundError as error:
        raise Vanished(str(source)) from error
    with opened, _private(beside) as out:
        digest, size = hashlib.sha256(), 0
        while block := opened.read(_BLOCK):
            digest.update(block)
            out.write(block)
            size += len(block)
        found = os.fstat(opened.fileno())
        out.flush()
        os.fchmod(out.fileno(), stat.S_IMODE(found.st_mode))
        os.utime(out.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
        os.fsync(out.fileno())
    beside.replace(target)
    return size, digest.hexdigest()


@contextmanager
def _private(place: Path) -> Iterator[BinaryIO]:
    place.unlink(missing_ok=True)
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        yield out


def digest(place: Path) -> str:
    """SHA-256 of a file."""
    with place.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def folders(target: Path, paths: Iterable[str]) -> None:
    """Make the folders that files at some paths below `target` lie in, private until `settle`."""
    for folder in sorted({parent for path in paths for parent in Path(path).parents}):
        (target / folder).mkdir(mode=0o700, parents=True, exist_ok=True)


def settle(source: Path, target: Path) -> None:
    """Give all folders below `target` the permissions that `source` has them with, and flush their entries to disk."""
    for place, _, _ in os.walk(target, topdown=False):
        like = source / Path(place).relative_to(target)
        if like.is_dir():
            Path(place).chmod(stat.S_IMODE(like.stat().st_mode))
        flush(Path(place))


def flush(folder: Path) -> None:
    """Flush a folder's entries to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
