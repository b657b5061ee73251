"""Where planned slices lie now: under their planned name, or wherever their content is found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from clickjoin.errors import SourceError
from clickjoin.sources.base import Slice
from clickjoin.sources.contents import BrokenGzip, fingerprint, head_of, holds, is_packed, opened, proof_of
from clickjoin.sources.listing import Found, list_files


def locate(pattern: str, slices: Sequence[Slice]) -> list[str | None]:
    """The path of each slice's bytes, proven by head and anchor; None if they are nowhere.

    A file that cannot be read at the moment counts as found. Errors: SourceError if the glob's folder does not exist,
    as of a disk that is not mounted: that says nothing about what it holds.
    """
    paths = [piece.path if _holds(piece.path, piece) else None for piece in slices]
    lost = [at for at, path in enumerate(paths) if path is None]
    if lost:
        listing = list_files(pattern, everything=True)
        if listing.missing:
            raise SourceError(listing.problems[0].detail)
        heads = _heads(listing.files, {slices[at].head_length for at in lost})
        for at in lost:
            piece = slices[at]
            found = heads.get((piece.head_length, piece.head_hash), ())
            paths[at] = next((path for path in found if _holds(path, piece)), None)
            if paths[at] is None and listing.hides(piece.path):
                paths[at] = piece.path
    return paths


def lost_reason(piece: Slice) -> str:
    """Why a slice cannot be read, in a sentence."""
    bytes_ = f"bytes {piece.start} to {piece.end}" if piece.end >= 0 else f"the bytes from {piece.start}"
    return f"{bytes_} of {piece.path} are in no file any more; put the file back, and they are read"


def packed_size(path: str) -> int:
    """Bytes on disk; 0 if the file is not there."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - the path may hold bytes that are no UTF-8
    except OSError:
        return 0


def _holds(path: str, piece: Slice) -> bool:
    try:
        with opened(path) as fd:
            return holds(fd, is_packed(fd, path), proof_of(piece), path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except BrokenGzip:  # after its head was found right; who reads it to its end puts that on record
        return piece.end < 0
    except OSError:
        return path == piece.path


def _heads(files: Iterable[Found], lengths: set[int]) -> Mapping[tuple[int, str], list[str]]:
    """Paths by the fingerprint of their first bytes, plain files first."""
    heads: dict[tuple[int, str], list[str]] = {}
    for file in sorted(files, key=lambda file: (file.path.endswith(".gz"), file.path)):
        try:
            with opened(file.path) as fd:
                head = head_of(fd, is_packed(fd, file.path))
        except OSError:
            continue
        for length in lengths:
            if length <= len(head):
                heads.setdefault((length, fingerprint(head[:length])), []).append(file.path)
    return heads
