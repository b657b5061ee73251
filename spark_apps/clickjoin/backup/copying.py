"""What a copy says where a disk or a store refuses, and that a file is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clickjoin.model.errors import LakeError


class Vanished(Exception):
    """A file that was to be copied is gone: its path below the lake."""


@contextmanager
def written_to(place: str, remedy: str) -> Iterator[None]:
    """Write to a folder in here. Errors: LakeError, with file and remedy, where a disk is full or refuses."""
    try:
        yield
    except OSError as error:
        where = error.filename2 or error.filename or place
        raise LakeError(f"{where}: cannot be written or read ({error.strerror or error})", remedy=remedy) from error
