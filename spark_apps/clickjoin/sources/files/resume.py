"""Finding again how far a file had been read, from the last record that landed of it: for a journal that was lost."""

from __future__ import annotations

import os

from clickjoin.kernel.file_bytes import HEAD, AllowedFolders, fingerprint, opened, read_at
from clickjoin.kernel.packed import is_packed
from clickjoin.model.errors import SourceError
from clickjoin.model.split import LastRecord
from clickjoin.sources.files.digests import after
from clickjoin.sources.files.state import FilePosition


def resume(last: LastRecord, fence: AllowedFolders | None = None) -> FilePosition | None:
    """The position just after a record; None where its file is gone, packed, or holds something else there.

    A file without a position is read from its beginning: what is read twice is dropped as repeats.
    """
    try:
        with opened(last.path, fence) as fd:
            if is_packed(fd, last.path):
                return None
            record = read_at(fd, last.offset, last.length + 2)
            if not _names(last.event_id, record[: last.length]):
                return None
            end = record.find(b"\n", max(last.length - 1, 0))
            if end < 0:
                return None
            return _position(fd, last, last.offset + end + 1)
    except (OSError, SourceError):
        return None


def _position(fd: int, last: LastRecord, offset: int) -> FilePosition:
    stat = os.fstat(fd)
    head = read_at(fd, 0, min(HEAD, stat.st_size))
    anchor = read_at(fd, max(offset - HEAD, 0), min(HEAD, offset))
    return FilePosition(
        generation=last.partition,
        path=last.path,
        device=stat.st_dev,
        inode=stat.st_ino,
        offset=offset,
        size=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        head_length=len(head),
        head_hash=fingerprint(head),
        anchor_length=len(anchor),
        anchor_hash=fingerprint(anchor),
        written_ns=stat.st_mtime_ns,
        changed_ns=stat.st_ctime_ns,
        prints=after(fd, "", 0, offset, last.path) or "",
    )


def _names(event_id: str, record: bytes) -> bool:
    """Whether a record holds an id, or all values of an id of several columns (see kernel.parse.fields)."""
    parts = (part.replace("%3A", ":").replace("%25", "%") for part in event_id.split(":"))
    return event_id.encode() in record or all(part.encode() in record for part in parts)
