"""What a batch takes of one file: where it ends, and the digests of all that has then been read of it."""

from __future__ import annotations

import os
from typing import NamedTuple

from clickjoin.kernel.file_bytes import HEAD, AllowedFolders, opened, read_at
from clickjoin.sources.files.digests import after, root
from clickjoin.sources.files.line_end import Ending, cut, cut_records
from clickjoin.sources.files.probe import Work
from clickjoin.sources.files.share import FileShare


class Piece(NamedTuple):
    """The last bytes that are taken, and digests of all up to them; of a .gz, of all of it as it lies on disk."""

    anchor: bytes
    prints: str


class Replaced(Exception):
    """The path leads to another file than the one that was listed, or to other bytes than had been read of it."""


def piece_of(
    work: Work, room: int, limit: int | None, must: bool, *, keep: bool, fence: AllowedFolders | None
) -> tuple[FileShare, Piece]:
    """Take at most so many bytes and records, as in `cut`; without `keep` nothing is digested.

    Errors: OSError, Replaced, SourceError where the file is shorter than it was.
    """
    position, want = work.position, work.want
    with opened(work.file.path, fence) as fd:
        stat = os.fstat(fd)
        if (stat.st_dev, stat.st_ino) != work.file.key:
            raise Replaced
        if want.whole:
            prints = after(fd, "", 0, work.file.size, work.file.path) if keep else ""
            return FileShare(want.unread, events_of(want.unread, want.mean), False), Piece(b"", prints or "")
        ending = _ending(fd, work, room, limit, must)
        length, prints = ending.end - position.offset, ""
        anchor = read_at(fd, max(ending.end - HEAD, 0), min(HEAD, ending.end)) if length else b""
        if keep and length:
            prints = after(fd, position.prints, position.offset, ending.end, work.file.path)
    if prints is None:
        raise Replaced
    records = events_of(length, want.mean) if ending.records is None else ending.records
    return FileShare(length, records, ending.more), Piece(anchor, prints)


def _ending(fd: int, work: Work, room: int, limit: int | None, must: bool) -> Ending:
    start, size = work.position.offset, work.file.size
    if work.quoted:
        return cut_records(fd, start, size, room, limit, must, work.closed, work.quoted, work.file.path)
    return cut(fd, start, size, room, limit, must, work.closed)


def events_of(length: int, mean: float) -> int:
    """About how many records so many bytes are; at least one if there are any."""
    return max(round(length / max(mean, 1)), 1) if length else 0


def root_of(prints: str, length: int) -> str:
    """What a split says of all before a place; empty where nothing was digested."""
    return root(prints, length) if prints else ""
