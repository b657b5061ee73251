"""Where a backup may lie: apart from the lake, and from what the sources read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clickjoin.config import Files
from clickjoin.config.sections import S3
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.places import declare, is_on_s3

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_GLOB = re.compile(r"[*?[]")


def absolute(place: str) -> str:
    """A folder as a command was given it, as an absolute path or a place on S3."""
    return place.rstrip("/") if is_on_s3(place) else str(Path(place).expanduser().absolute())


def reach(pipeline: Pipeline, place: str) -> None:
    """Have a backup, and what a restore makes beside the lake, lie in the store that the pipeline's file names."""
    store = pipeline.s3.store if pipeline.s3 != S3() else None
    for where in filter(is_on_s3, (pipeline.lake, place)):
        declare(where, store)


def require_apart(pipeline: Pipeline, folder: str) -> None:
    """Check that a folder lies neither in the lake nor in a source's folder. Errors: ConfigError."""
    taken = {"the lake": pipeline.root}
    for item in pipeline.inputs:
        if not isinstance(item.source, Files):
            continue
        parts = item.source.path.split("/")
        fixed = next((at for at, part in enumerate(parts) if _GLOB.search(part)), len(parts) - 1)
        taken[f"the log folder of {item.section}.source.path"] = "/".join(parts[:fixed]) or "/"
    for what, inside in taken.items():
        if _is_inside(folder, inside):
            raise ConfigError(f"{folder}: lies inside {what}, {inside}", remedy="Give a folder apart from it")


def _is_inside(place: str, folder: str) -> bool:
    if is_on_s3(place) or is_on_s3(folder):
        return f"{place}/".startswith(f"{folder.rstrip('/')}/")
    return Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))


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
