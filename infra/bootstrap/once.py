"""Work that is done once for each lock file: stamps, and a lock against two set-ups at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import ROOT


@contextmanager
def exclusive(folder: Path = ROOT) -> Iterator[None]:
    """Lock `folder` for this set-up; the system lets go of it when this process dies."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another set-up of this checkout", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def fingerprint(*parts: Path | str) -> str:
    """One hash of texts and of files' contents."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.read_bytes() if isinstance(part, Path) else part.encode()
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def stamped(folder: Path, value: str) -> bool:
    """Whether the work in `folder` was finished for `value`."""
    try:
        return (folder / ".stamp").read_text() == value
    except OSError:
        return False


def stamp(folder: Path, value: str) -> None:
    """Say that the work in `folder` is finished for `value`."""
    (folder / ".stamp").write_text(value)
