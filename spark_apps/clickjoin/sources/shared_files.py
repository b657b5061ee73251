"""Files that both streams of a pipeline read, though their globs differ: each record would be an event of either."""

from __future__ import annotations

import os
from contextlib import suppress
from glob import iglob
from stat import S_ISREG
from typing import TYPE_CHECKING

from clickjoin.config import Files
from clickjoin.model.errors import ConfigError
from clickjoin.model.places import above_globs, is_on_s3

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

SHARED = "is read by both streams, so that each record would be an event of either"
REMEDY = (
    "Give each stream files of its own, or both the same glob and a `where` that says which records are whose "
    "(docs/logs.md)"
)


def shared_files(one: str, other: str) -> list[str]:
    """Files of this machine that two different globs match; those on S3 are not listed."""
    if one == other or is_on_s3(one) or is_on_s3(other):
        return []
    roots = [f"{above_globs(os.path.normpath(pattern)).rstrip('/')}/" for pattern in (one, other)]
    if not (roots[0].startswith(roots[1]) or roots[1].startswith(roots[0])):
        return []
    ours, theirs = _files(one), _files(other)
    return sorted(os.path.realpath(ours[key]) for key in ours.keys() & theirs.keys())


def shared_by(pipeline: Pipeline) -> list[str]:
    """Those that a pipeline's streams share, unless each says by `where` which records are its own."""
    streams = [item.stream for item in pipeline.inputs]
    sources = [stream.source for stream in streams if isinstance(stream.source, Files)]
    if len(sources) < 2 or all(stream.where for stream in streams):
        return []
    return shared_files(*(source.path for source in sources))


def require_apart(pipeline: Pipeline) -> None:
    """Check that no file is read by both streams whole. Errors: ConfigError."""
    if any(item.stream.where for item in pipeline.inputs):
        return  # what the other stream takes may be all that the file holds
    if shared := shared_by(pipeline):
        raise ConfigError(f"{said(shared)} {SHARED}", remedy=REMEDY)


def said(files: list[str]) -> str:
    """The first of some files, and how many more there are."""
    return files[0] + (f", as {len(files) - 1:,} more," if len(files) > 1 else "")


def _files(pattern: str) -> dict[tuple[int, int], str]:
    """Files by device and inode, which a link shares with what it leads to."""
    found = {}
    for path in iglob(pattern, recursive=True):  # noqa: PTH207 - Path.glob knows no absolute pattern
        with suppress(OSError):  # it has gone, or leads nowhere
            seen = os.stat(path)  # noqa: PTH116 - of each file of a log, whenever an engine starts
            if S_ISREG(seen.st_mode):
                found[seen.st_dev, seen.st_ino] = path
    return found
