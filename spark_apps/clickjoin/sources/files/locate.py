"""Where planned splits lie now: under their planned name, or wherever their content is found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from clickjoin.kernel.file_bytes import (
    HEAD,
    AllowedFolders,
    fingerprint,
    head_of,
    holds,
    opened,
    packed_blocks,
    plain_blocks,
    read_at,
)
from clickjoin.kernel.packed import BrokenFile, is_packed, may_be_packed
from clickjoin.model.errors import SourceError
from clickjoin.model.split import LastRecord
from clickjoin.sources.files.digests import after, prints_of, root
from clickjoin.sources.files.listing import LogFile, list_files
from clickjoin.sources.files.state import FilePosition, FileSplit, proof_of


def locate(pattern: str, splits: Sequence[FileSplit], fence: AllowedFolders | None = None) -> list[str | None]:
    """The path of each split's bytes: the planned file's, or that of one that holds the same; None if they are nowhere.

    A file that cannot be read at the moment counts as found. Errors: SourceError if the glob's folder does not exist,
    as of a disk that is not mounted: that says nothing about what it holds.
    """
    paths = [piece.path if _holds(piece.path, piece, fence) else None for piece in splits]
    lost = [at for at, path in enumerate(paths) if path is None]
    if lost:
        listing = list_files(pattern, everything=True, fence=fence)
        if listing.missing:
            raise SourceError(listing.problems[0].detail)
        heads = _heads(listing.files, {splits[at].head_length for at in lost}, fence)
        for at in lost:
            piece = splits[at]
            found = heads.get((piece.head_length, piece.head_hash), ())
            paths[at] = next((path for path in found if _holds(path, piece, fence)), None)
            if paths[at] is None and listing.hides(piece.path):
                paths[at] = piece.path
    return paths


def lost_reason(piece: FileSplit) -> str:
    """Why a split cannot be read, in a sentence."""
    bytes_ = f"bytes {piece.start} to {piece.end}" if piece.end >= 0 else f"the bytes from {piece.start}"
    return f"{bytes_} of {piece.path} are in no file any more; put the file back, and they are read"


def packed_size(path: str) -> int:
    """Bytes on disk; 0 if the file is not there."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - the path may hold bytes that are no UTF-8
    except OSError:
        return 0


def _holds(path: str, piece: FileSplit, fence: AllowedFolders | None) -> bool:
    try:
        with opened(path, fence) as fd:
            packed = is_packed(fd, path)
            return holds(fd, packed, proof_of(piece), path) and _is_it(fd, packed, path, piece)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except BrokenFile:  # after its head was found right; who reads it to its end puts that on record
        return piece.end < 0
    except OSError:
        return path == piece.path


def _is_it(fd: int, packed: bool, path: str, piece: FileSplit) -> bool:
    """Whether a file is the planned one, or holds all of its bytes up to the split's end."""
    stat = os.fstat(fd)
    if not piece.root or (stat.st_dev, stat.st_ino) == (piece.device, piece.inode):
        return True
    raw = piece.end < 0
    end = stat.st_size if raw else piece.end
    blocks = packed_blocks(fd, 0, end, proof_of(piece), path) if packed and not raw else plain_blocks(fd, 0, end, path)
    try:
        return root(prints_of(blocks, end), end) == piece.root
    except SourceError:
        return False


def _heads(
    files: Iterable[LogFile], lengths: set[int], fence: AllowedFolders | None
) -> Mapping[tuple[int, str], list[str]]:
    """Paths by the fingerprint of their first bytes, plain files first."""
    heads: dict[tuple[int, str], list[str]] = {}
    for file in sorted(files, key=lambda file: (may_be_packed(file.path), file.path)):
        try:
            with opened(file.path, fence) as fd:
                head = head_of(fd, is_packed(fd, file.path))
        except OSError:
            continue
        for length in lengths:
            if length <= len(head):
                heads.setdefault((length, fingerprint(head[:length])), []).append(file.path)
    return heads


def resume(last: LastRecord, fence: AllowedFolders | None = None) -> FilePosition | None:
    """The position after the line that begins at a record's place; None where its file is gone, packed or has none.

    A file without a position is read from its beginning: what is read twice is dropped as repeats.
    """
    try:
        with opened(last.path, fence) as fd:
            if is_packed(fd, last.path):
                return None
            record = read_at(fd, last.offset, last.length + 2)
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
