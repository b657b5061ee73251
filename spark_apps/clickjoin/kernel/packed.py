"""Files whose content has to be unpacked: .gz, .zst, .bz2, and Parquet, whose content is its rows as JSON lines.

Runs on executors. Which it is, the first bytes say; the name says only that it may be one.
"""

from __future__ import annotations

import bz2
import io
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from clickjoin.kernel.parquet_lines import has_footer, json_lines, type_hints
from clickjoin.kernel.remote_file import Handle, length_of, pread
from clickjoin.model.errors import ClickjoinError
from clickjoin.model.ids import TypeHints

BLOCK = 8 << 20
T = TypeVar("T")
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"PAR1": "parquet"}
SUFFIX = {"gzip": ".gz", "zstd": ".zst", "bz2": ".bz2", "parquet": ".parquet"}  # that files of a kind are named by
_USUAL, _TIGHTEST = 8, 1032  # times as long as packed: usually, and at most (.gz)
_STEP = 1 << 16  # unpacked at a time, whatever is asked for: what is left of a damaged file is always the same


class BrokenFile(Exception):
    """A packed file ends early or is damaged, after what could be unpacked."""


def may_be_packed(path: str) -> bool:
    """Whether a file may be packed, by its name."""
    return path.endswith(tuple(SUFFIX.values()))


def is_packed(fd: Handle, path: str) -> bool:
    """Whether a file is packed: by its name and by its first bytes."""
    return may_be_packed(path) and _kind(fd) is not None


def is_parquet(fd: Handle) -> bool:
    """Whether the first bytes are those of a Parquet file."""
    return _kind(fd) == "parquet"


def is_complete(fd: Handle) -> bool:
    """Whether a packed file can be unpacked to its end; of Parquet, whether its footer is there."""
    try:
        return has_footer(_File(fd)) if is_parquet(fd) else all(True for _ in unpack(fd))
    except BrokenFile:
        return False


def type_hints_of(fd: Handle) -> TypeHints:
    """Columns of a Parquet file whose texts do not say what they are; none of another. Errors: as of `unpack`."""
    file = _File(fd)
    return next(_checked(map(type_hints, map(pq.read_schema, [file])), file)) if is_parquet(fd) else TypeHints()


def unpack(fd: Handle, size: int = BLOCK) -> Iterator[bytes]:
    """Content of a packed file (of .gz, .zst, .bz2 all members) in blocks of at most `size` bytes.

    Errors: BrokenFile where it ends early or is damaged, after all that could be unpacked; OSError of the disk.
    """
    file = _File(fd)
    streams = {"gzip": _gzip, "parquet": json_lines, "bz2": _bz2}
    return _blocks(_checked(streams.get(_kind(fd) or "", _zstd)(file), file), size)


def unpacked_size(fd: Handle, size: int) -> int:
    """About how many bytes a packed file of `size` bytes holds.

    A .gz has the length in its last four bytes, up to a multiple of 4 GB; of a damaged one they may hold anything, so
    never more is believed than can be packed so tight.
    """
    if _kind(fd) != "gzip":
        return size * _USUAL
    return min(int.from_bytes(pread(fd, 4, max(size - 4, 0)), "little"), size * _TIGHTEST)


def _kind(fd: Handle) -> str | None:
    head = pread(fd, 4, 0)
    if is_skipped(head):
        return "zstd"
    return next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), None)


class _File(io.RawIOBase):
    """A handle as a file with a place of its own, up to `end` if there is one; `failed`: why the disk or store did."""

    def __init__(self, fd: Handle, end: int | None = None) -> None:
        self.fd, self.at, self.end = fd, 0, end
        self.failed: Exception | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: 0}[whence]
        self.at = offset + (length_of(self.fd) if whence == os.SEEK_END else base)
        return self.at

    def tell(self) -> int:
        return self.at

    def readinto(self, buffer: Any) -> int:
        try:
            length = len(buffer) if self.end is None else max(min(len(buffer), self.end - self.at), 0)
            data = pread(self.fd, length, self.at)
        except (OSError, ClickjoinError) as error:
            self.failed = error
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
            yield from _behind(_pieces(_File(file.fd, frames_end(file.fd))), given)
        raise


def _behind(pieces: Iterator[bytes], given: int) -> Iterator[bytes]:
    """What follows the first bytes of a content."""
    for piece in pieces:
        yield piece[given:]
        given = max(given - len(piece), 0)


def _pieces(file: _File) -> Iterator[bytes]:
    if file.end == 0:
        return
    with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd") as stream:
        while piece := stream.read(_STEP):
            yield piece


class _Inflater:
    """zlib's decompressor of a .gz member, with the methods of bz2's."""

    def __init__(self) -> None:
        self._member, self._left = zlib.decompressobj(31), b""

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def needs_input(self) -> bool:
        return not self._left

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    def decompress(self, data: bytes, most: int) -> bytes:
        block = self._member.decompress(self._left + data, most)
        self._left = self._member.unconsumed_tail
        return block


def _gzip(file: _File) -> Iterator[bytes]:
    return _members(file, _Inflater)


def _bz2(file: _File) -> Iterator[bytes]:
    return _members(file, bz2.BZ2Decompressor)


def _members(file: _File, new: Callable[[], Any]) -> Iterator[bytes]:
    """Content of all members, one after the other."""
    packed = _padded(file, b"")
    while packed:
        member = new()
        yield from _member(file, member, packed)
        packed = _padded(file, member.unused_data)


def _padded(file: _File, packed: bytes) -> bytes:
    """Where the next member begins, however many zeros lie before it; empty at the end of the file."""
    while not (packed := packed.lstrip(b"\0")):
        packed = file.read(_STEP) or b""
        if not packed:
            break
    return packed


def _member(file: _File, member: Any, packed: bytes) -> Iterator[bytes]:
    while True:
        if block := member.decompress(packed, _STEP):
            yield block
        if member.eof:
            return
        packed = (file.read(_STEP) or b"") if member.needs_input else b""
        if member.needs_input and not packed:
            raise ValueError(f"after {file.tell()} packed bytes")


def _checked(pieces: Iterator[T], file: _File) -> Iterator[T]:
    """What the library cannot read is damaged, unless it was the disk or the store that failed."""
    try:
        yield from pieces
    except Exception as error:  # such as OverflowError, KeyError, TypeError: what libraries raise for odd content
        if file.failed:
            raise file.failed from None
        why = next(iter(str(error).splitlines()), type(error).__name__)[:200]
        raise BrokenFile(f"it ends early or is damaged ({why})") from error


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


_FRAME = b"\x28\xb5\x2f\xfd"
_SKIPPED = b"\x2a\x4d\x18"  # after a byte of 0x50 to 0x5f
_RLE, _CHECKSUM = 1, 4


def is_skipped(head: bytes) -> bool:
    """Whether a frame begins that holds no content, as the first one of pzstd."""
    return head[1:4] == _SKIPPED and head[0] >> 4 == 5


def frames_end(fd: Handle) -> int:
    """Offset just behind the last frame that is there whole; 0 where none is."""
    size, at = length_of(fd), 0
    while True:
        end = _end_of(fd, at)
        if end is None or end > size:
            return at
        at = end


def _end_of(fd: Handle, at: int) -> int | None:
    """Where the frame at an offset ends; None where none begins, or its headers are not all there."""
    head = pread(fd, 8, at)
    if len(head) == 8 and is_skipped(head):
        return at + 8 + int.from_bytes(head[4:8], "little")
    if len(head) < 5 or head[:4] != _FRAME:
        return None
    descriptor = head[4]
    single = descriptor >> 5 & 1
    content = (single, 2, 4, 8)[descriptor >> 6]
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    at += 5 + (0 if single else 1) + dictionary + content
    while len(block := pread(fd, 3, at)) == 3:
        header = int.from_bytes(block, "little")
        at += 3 + (1 if header >> 1 & 3 == _RLE else header >> 3)
        if header & 1:
            return at + (4 if descriptor & _CHECKSUM else 0)
    return None
