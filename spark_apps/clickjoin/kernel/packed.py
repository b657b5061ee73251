"""Files whose content has to be unpacked: .gz, .zst, .bz2, and Parquet, whose content is its rows as JSON lines.

Runs on executors. Which it is, the first bytes say; the name says only that it may be one.
"""

from __future__ import annotations

import bz2
import io
import os
import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from clickjoin.kernel.parquet_lines import has_footer, json_lines
from clickjoin.kernel.zstd_frames import frames_end, is_skipped

BLOCK = 8 << 20
SUFFIXES = (".gz", ".zst", ".bz2", ".parquet")
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"PAR1": "parquet"}
_USUAL, _TIGHTEST = 8, 1032  # times as long as packed: usually, and at most (.gz)
_STEP = 1 << 16  # unpacked at a time, whatever is asked for: what is left of a damaged file is always the same


class BrokenFile(Exception):
    """A packed file ends early or is damaged, after what could be unpacked."""


def may_be_packed(path: str) -> bool:
    """Whether a file may be packed, by its name."""
    return path.endswith(SUFFIXES)


def is_packed(fd: int, path: str) -> bool:
    """Whether a file is packed: by its name and by its first bytes."""
    return may_be_packed(path) and _kind(fd) is not None


def is_parquet(fd: int) -> bool:
    """Whether the first bytes are those of a Parquet file."""
    return _kind(fd) == "parquet"


def is_complete(fd: int) -> bool:
    """Whether a packed file can be unpacked to its end; of Parquet, whether its footer is there."""
    try:
        return has_footer(_File(fd)) if is_parquet(fd) else all(True for _ in unpack(fd))
    except BrokenFile:
        return False


def unpack(fd: int, size: int = BLOCK) -> Iterator[bytes]:
    """Content of a packed file (of .gz, .zst, .bz2 all members) in blocks of at most `size` bytes.

    Errors: BrokenFile where it ends early or is damaged, after all that could be unpacked; OSError of the disk.
    """
    kind = _kind(fd)
    if kind == "gzip":
        return _gzip(fd, size)
    file = _File(fd)
    streams = {"parquet": json_lines, "bz2": _bz2}
    return _blocks(_checked(streams.get(kind or "", _zstd)(file), file), size)


def unpacked_size(fd: int, size: int) -> int:
    """About how many bytes a packed file of `size` bytes holds.

    A .gz has the length in its last four bytes, up to a multiple of 4 GB; of a damaged one they may hold anything, so
    never more is believed than can be packed so tight.
    """
    if _kind(fd) != "gzip":
        return size * _USUAL
    return min(int.from_bytes(os.pread(fd, 4, max(size - 4, 0)), "little"), size * _TIGHTEST)


def _kind(fd: int) -> str | None:
    head = os.pread(fd, 4, 0)
    if is_skipped(head):
        return "zstd"
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def _gzip(fd: int, size: int) -> Iterator[bytes]:
    at, packed, inside, member = 0, b"", False, zlib.decompressobj(31)
    while True:
        if not packed:
            packed = os.pread(fd, 1 << 18, at)
            at += len(packed)
            if not packed and inside:
                raise BrokenFile(f"it ends early, after {at} packed bytes")
            if not packed:
                return
        if not inside:
            packed = packed.lstrip(b"\0")  # padding between members
        block = _inflate(member, packed, size, at)
        inside = bool(packed) and not member.eof
        packed, member = (
            (member.unused_data, zlib.decompressobj(31)) if member.eof else (member.unconsumed_tail, member)
        )
        if block:
            yield block


def _inflate(member: Any, packed: bytes, size: int, at: int) -> bytes:
    try:
        return bytes(member.decompress(packed, size))
    except zlib.error as error:
        raise BrokenFile(f"it is damaged before its packed byte {at} ({error})") from error


class _File(io.RawIOBase):
    """A descriptor as a file with a place of its own, up to `end` if there is one; `failed`: the disk did."""

    def __init__(self, fd: int, end: int | None = None) -> None:
        self.fd, self.at, self.end, self.failed = fd, 0, end, False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: 0}[whence]
        self.at = offset + (os.fstat(self.fd).st_size if whence == os.SEEK_END else base)
        return self.at

    def tell(self) -> int:
        return self.at

    def readinto(self, buffer: Any) -> int:
        try:
            length = len(buffer) if self.end is None else max(min(len(buffer), self.end - self.at), 0)
            data = os.pread(self.fd, length, self.at)
        except OSError:
            self.failed = True
            raise
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)


def _zstd(file: _File) -> Iterator[bytes]:
    given = 0
    try:
        for piece in _pieces(file):
            yield piece
            given += len(piece)
    except (pa.ArrowException, OSError):
        # A read throws away what it had when it meets damage: what lies in whole frames is read without what follows.
        if not file.failed:
            yield b"".join(_pieces(_File(file.fd, frames_end(file.fd))))[given:]
        raise


def _pieces(file: _File) -> Iterator[bytes]:
    if file.end == 0:
        return
    with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd") as stream:
        while piece := stream.read(_STEP):
            yield piece


def _bz2(file: _File) -> Iterator[bytes]:
    member, packed, inside = bz2.BZ2Decompressor(), b"", False
    while True:
        if member.eof:
            packed, member, inside = member.unused_data.lstrip(b"\0"), bz2.BZ2Decompressor(), False
        if not packed and member.needs_input:
            packed = file.read(_STEP)
            packed = packed if inside else packed.lstrip(b"\0")  # padding between members
            if not packed and inside:
                raise ValueError(f"after {file.tell()} packed bytes")
            if not packed:
                return
        inside = True
        if block := member.decompress(packed, _STEP):
            yield block
        packed = b""


def _checked(pieces: Iterator[bytes], file: _File) -> Iterator[bytes]:
    """What the library cannot read is damaged, unless it was the disk that failed."""
    try:
        yield from pieces
    except Exception as error:  # such as OverflowError, KeyError, TypeError: what libraries raise for odd content
        if file.failed:
            raise
        raise BrokenFile(f"it ends early or is damaged ({str(error).splitlines()[0][:200]})") from error


def _blocks(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Pieces as blocks of `size` bytes, the last one shorter; what came before an error is given first."""
    held: list[bytes] = []
    length = 0
    fault: BrokenFile | None = None
    try:
        for piece in pieces:
            held.append(piece)
            length += len(piece)
            if length >= size:
                whole = b"".join(held)
                full = length // size * size
                yield from _cut(whole[:full], size)
                held, length = [whole[full:]], length - full
    except BrokenFile as error:
        fault = error
    yield from _cut(b"".join(held), size)
    if fault:
        raise fault


def _cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]
