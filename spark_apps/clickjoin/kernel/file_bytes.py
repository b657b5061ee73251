"""What lies in a file, plain or packed, and whether it is what it was; and which folders it may be read from.

Offsets and lengths are in bytes, of the unpacked content for a packed one. Where a file lies is checked once it is
open: a link may lead elsewhere by then. Runs on workers too: imports no planning.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from clickjoin.kernel.packed import BLOCK, BrokenFile, unpack
from clickjoin.kernel.remote_file import Handle, RemoteFile, length_of, pread
from clickjoin.model.errors import ConfigError, SourceMoved

if TYPE_CHECKING:
    from clickjoin.kernel.chunk import Chunk

# The local stack's folder of state, wherever it lies: passwords, keys, addresses with their tokens.
STATE = ".run"
_WILD = re.compile(r"[*?[]")


class Outside(FileNotFoundError):
    """A file that a link has led out of the fence since it was listed: for its reader it is gone."""


class AllowedFolders(NamedTuple):
    """Folders that files may be read below, and folders inside of them that none is read below; links resolved.

    `prefixes`: s3://BUCKET/FOLDER that objects may be read below. `own`: the folder that a source's own glob starts
    from: what is inside of it the pipeline's file opens; elsewhere it stays closed, wherever links lead.
    """

    roots: tuple[str, ...]
    closed: tuple[str, ...]
    prefixes: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def require_on_s3(self, pattern: str) -> None:
        """Check where a glob of objects begins. Errors: ConfigError."""
        base = _WILD.split(pattern, maxsplit=1)[0]
        if ".." in pattern.split("/") or not _below(base.rpartition("/")[0], self.prefixes):
            where = f"only below {', '.join(self.prefixes)}" if self.prefixes else "from no bucket at all"
            raise ConfigError(
                f"{pattern}: raw logs on S3 are taken {where}",
                remedy="Copy the logs there, or name their place in backfill.roots of the pipeline's file",
            )

    def require(self, path: str) -> None:
        """Check where a file or folder, or the folder that a glob starts from, really lies. Errors: ConfigError."""
        real = os.path.realpath(path)
        if closed := self._closed(real):
            raise ConfigError(
                f"{path}: lies below {closed}, where passwords and keys are kept: no raw logs are read from there",
                remedy="Move the logs out of it, or name files in the glob that lie elsewhere",
            )
        if not _below(real, self.roots):
            where = f"only below {', '.join(self.roots)}" if self.roots else "from no folder at all"
            raise ConfigError(
                f"{path}: raw logs are taken {where}, wherever links lead",
                remedy="Move the logs there, or name their folder in backfill.roots of the pipeline's file",
            )

    def check(self, fd: int, path: str) -> None:
        """Check where an open file really lies. Errors: Outside."""
        real = _real(fd, path)
        if self._closed(real) or not _below(real, self.roots):
            raise Outside(errno.ENOENT, "a link leads out of the folders that raw logs are taken from", path)

    def holds(self, path: str) -> bool:
        """Whether a path may be read as things are now."""
        real = os.path.realpath(path)
        return _below(real, self.roots) and not self._closed(real)

    def _closed(self, real: str) -> str:
        if _below(real, self.own):
            return ""
        parts = real.split("/")
        if STATE in parts:
            return "/".join(parts[: parts.index(STATE) + 1])
        return next((folder for folder in self.closed if _below(real, (folder,))), "")


def _below(real: str, folders: Iterable[str]) -> bool:
    return any(real == folder or real.startswith(folder.rstrip("/") + "/") for folder in folders)


def _real(fd: int, path: str) -> str:
    """Where an open file lies: by the kernel, or else by its name if that is still the same file."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115
    except OSError:
        real = os.path.realpath(path)
        try:
            same = os.path.samestat(os.stat(real, follow_symlinks=False), os.fstat(fd))  # noqa: PTH116
        except OSError:
            same = False
        return real if same else ""


HEAD = 1024  # longest fingerprinted head, and anchor
NO_FILE = (errno.ELOOP, errno.ENXIO)  # links in a circle, a socket: as surely no file as where nothing lies
_LOOK_AGAIN = "Run the batch again: it looks for them under other names first"


class Proof(NamedTuple):
    """What shows that a file holds the known content: hashes of its first bytes and of those just before `offset`."""

    head_length: int
    head_hash: str
    offset: int
    anchor_length: int
    anchor_hash: str


def fingerprint(data: bytes) -> str:
    """Hash of some bytes as text; that of no bytes is empty."""
    return hashlib.blake2b(data, digest_size=16).hexdigest() if data else ""


@contextmanager
def opened(path: str, fence: AllowedFolders | None) -> Iterator[int]:
    """The file's descriptor, for reading.

    Errors: OSError; of it FileNotFoundError also where something else than a file lies there (a folder, a FIFO, a
    socket, a device, links that lead in a circle), and Outside where the file lies outside of the fence.
    """
    fd = _open(path)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise _no_file(path)
        if fence:
            fence.check(fd, path)
        yield fd
    finally:
        os.close(fd)


@contextmanager
def opened_chunk(chunk: Chunk) -> Iterator[Handle]:
    """Where a chunk lies, for reading. Errors: as `opened`; of an object only as it is read."""
    if chunk.remote:
        yield RemoteFile(chunk.remote, chunk.path)
        return
    with opened(chunk.path, chunk.fence) as fd:
        yield fd


def _open(path: str) -> int:
    """Open what lies there, without waiting: a FIFO would have it wait for a writer. Errors: as `opened`."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno in NO_FILE:
            raise _no_file(path) from error
        raise


def _no_file(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "what lies there is no file", path)


def read_at(fd: Handle, offset: int, length: int) -> bytes:
    """Bytes [offset, offset + length); fewer only where the file ends."""
    data = pread(fd, length, offset)
    while data and len(data) < length:
        more = pread(fd, length - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def head_of(fd: Handle, packed: bool, length: int = HEAD) -> bytes:
    """The first bytes of the content; fewer where it ends, or where a packed file is not written so far."""
    if not packed:
        return read_at(fd, 0, length)
    head = b""
    try:
        for block in unpack(fd, length):
            head += block
            if len(head) >= length:
                break
    except BrokenFile:
        pass
    return head[:length]


def changed(path: str, offset: int) -> SourceMoved:
    """The error of a reader that finds other bytes than the planned ones."""
    return SourceMoved(f"{path}: the bytes before offset {offset} are not the planned ones (rotated or rewritten)",
                       remedy=_LOOK_AGAIN)  # fmt: skip


def unplaced(path: str) -> SourceMoved:
    """The error of a reader that finds nothing where the planned bytes lay."""
    return SourceMoved(f"{path}: is not where it was when the batch was planned", remedy=_LOOK_AGAIN)


def plain_blocks(fd: Handle, begin: int, end: int, path: str, size: int = BLOCK) -> Iterator[bytes]:
    """Bytes [begin, end) of a plain file in blocks. Errors: SourceMoved if the file ends before that."""
    while begin < end:
        block = read_at(fd, begin, min(size, end - begin))
        if not block:
            raise changed(path, end)
        yield block
        begin += len(block)


def packed_blocks(fd: Handle, begin: int, end: int, proof: Proof, path: str, size: int = BLOCK) -> Iterator[bytes]:
    """Unpacked bytes [begin, end) in blocks (end -1: to the end); the anchor is checked as it goes by.

    Errors: SourceMoved if the content is another or shorter, BrokenFile as in `unpack`.
    """
    at, tail, proven = 0, b"", not proof.anchor_length
    for block in unpack(fd, size):
        if not proven and at + len(block) >= proof.offset:
            before = (tail + block[: proof.offset - at])[-proof.anchor_length :]
            if fingerprint(before) != proof.anchor_hash:
                raise changed(path, proof.offset)
            proven = True
        low, high = max(begin - at, 0), len(block) if end < 0 else min(len(block), end - at)
        if low < high:
            yield block[low:high]
        tail = block[-HEAD:] if len(block) >= HEAD else (tail + block)[-HEAD:]
        at += len(block)
        if 0 <= end <= at and proven:
            return
    if not proven or at < max(begin, end):
        raise changed(path, max(begin, end, proof.offset))


def has_head(fd: Handle, packed: bool, proof: Proof) -> bool:
    """Whether the file's head is the known one."""
    return fingerprint(head_of(fd, packed, proof.head_length) if proof.head_length else b"") == proof.head_hash


def holds(fd: Handle, packed: bool, proof: Proof, path: str) -> bool:
    """Whether the file's head, and the bytes before the offset, are the known ones. Errors: BrokenFile."""
    if not has_head(fd, packed, proof):
        return False
    if packed:
        return has_tail(fd, proof, path) is not None
    anchor = read_at(fd, proof.offset - proof.anchor_length, proof.anchor_length) if proof.anchor_length else b""
    return length_of(fd) >= proof.offset and fingerprint(anchor) == proof.anchor_hash


def has_tail(fd: Handle, proof: Proof, path: str) -> bool | None:
    """Whether a packed file goes on after the known content; None if it does not hold that. Errors: BrokenFile."""
    try:
        return next(packed_blocks(fd, proof.offset, -1, proof, path), None) is not None
    except SourceMoved:
        return None
