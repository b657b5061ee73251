"""A folder of a local disk, copied so that each file is there whole or not at all, flushed, as private as it was."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from clickjoin.config.umask import in_force
from clickjoin.model.errors import ConfigError

if TYPE_CHECKING:
    from clickjoin.lake.tree import Found, Tree

_BLOCK = 1 << 20


class LocalTree:
    """See Tree."""

    renames_at_once = True

    def __init__(self, root: str | Path) -> None:
        self._path = Path(root)
        self.root = str(root)

    @property
    def name(self) -> str:
        """See Tree."""
        return self._path.name

    @property
    def parent(self) -> LocalTree:
        """See Tree."""
        return LocalTree(self._path.parent)

    def at(self, path: str) -> LocalTree:
        """See Tree."""
        return LocalTree(self._path / path)

    def beside(self, ending: str) -> LocalTree:
        """See Tree."""
        return LocalTree(f"{self.root}{ending}")

    def resolved(self) -> LocalTree:
        """See Tree."""
        return LocalTree(self._path.resolve())

    def is_link(self) -> bool:
        """See Tree."""
        return self._path.is_symlink()

    def exists(self) -> bool:
        """See Tree."""
        return self._path.exists()

    def make(self, *, shared: bool = False) -> None:
        """See Tree."""
        self._path.mkdir(mode=0o777 if shared else 0o700, parents=True, exist_ok=True)

    def children(self) -> list[str]:
        """See Tree."""
        return sorted(path.name for path in self._path.iterdir() if path.is_dir()) if self._path.is_dir() else []

    def files(self, folder: str = "") -> dict[str, int]:
        """See Tree."""
        found = [path for path in (self._path / folder).rglob("*") if path.is_file()]
        return {str(path.relative_to(self._path)): path.stat().st_size for path in found}

    def size(self, path: str) -> int | None:
        """See Tree."""
        file = self._path / path
        return file.stat().st_size if file.is_file() else None

    def digest(self, path: str) -> Found:
        """See Tree."""
        with (self._path / path).open("rb") as opened:
            return os.fstat(opened.fileno()).st_size, hashlib.file_digest(opened, "sha256").hexdigest()

    def read(self, path: str) -> bytes | None:
        """See Tree."""
        file = self._path / path
        return file.read_bytes() if file.is_file() else None

    def write(self, path: str, data: bytes) -> None:
        """See Tree."""
        file = self._path / path
        beside = file.with_name(f".{file.name}")
        with beside.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
        flush(file.parent)

    def open(self, path: str) -> IO[bytes]:
        """See Tree."""
        return (self._path / path).open("rb")

    def prepare(self, paths: Iterable[str]) -> None:
        """See Tree. Private until `settle`."""
        for folder in sorted({parent for path in paths for parent in Path(path).parents}):
            (self._path / folder).mkdir(mode=0o700, parents=True, exist_ok=True)

    def copy(self, path: str, source: Tree) -> Found:
        """See Tree. From a disk with its times and its permissions."""
        target = self._path / path
        beside = target.with_name(f"{target.name}.copying")
        with source.open(path) as opened, _private(beside) as out:
            found = hashing(opened, out)
            out.flush()
            if isinstance(source, LocalTree):
                like = os.fstat(opened.fileno())
                os.fchmod(out.fileno(), stat.S_IMODE(like.st_mode))
                os.utime(out.fileno(), ns=(like.st_atime_ns, like.st_mtime_ns))
            else:
                os.fchmod(out.fileno(), 0o666 & ~in_force())
            os.fsync(out.fileno())
        beside.replace(target)
        return found

    def lend(self, path: str, held: Tree) -> bool:
        """See Tree. As a second name of it."""
        if not isinstance(held, LocalTree):
            return False
        try:
            os.link(held._path / path, self._path / path)
        except OSError:  # gone, or a file system without links
            return False
        return True

    def settle(self, like: Tree) -> None:
        """See Tree."""
        for place, _, _ in os.walk(self._path, topdown=False):
            if isinstance(like, LocalTree):
                known = like._path / Path(place).relative_to(self._path)
                if known.is_dir():
                    Path(place).chmod(stat.S_IMODE(known.stat().st_mode))
            else:
                Path(place).chmod(0o777 & ~in_force())
            flush(Path(place))

    def remove(self, paths: Iterable[str]) -> None:
        """See Tree."""
        for path in paths:
            (self._path / path).unlink(missing_ok=True)

    def discard(self, first: str = "") -> None:
        """See Tree."""
        if first:
            (self._path / first).unlink(missing_ok=True)
        shutil.rmtree(self._path)

    def rename(self, to: Tree, *, last: str = "", but: str = "") -> None:
        """See Tree: in one step."""
        self._path.rename(to.root)
        flush(self._path.parent)

    @contextmanager
    def alone(self, name: str, what: str) -> Iterator[LocalTree]:
        """See Tree. For as long as the process lives, at the longest."""
        handle = os.open(self._path / name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise ConfigError(f"{self.root}: {what} is under way", remedy="Wait until it has ended") from error
        try:
            yield self
        finally:
            os.close(handle)


def hashing(source: IO[bytes], target: IO[bytes]) -> Found:
    """Copy a stream; returns its bytes and SHA-256."""
    digest, size = hashlib.sha256(), 0
    while block := source.read(_BLOCK):
        digest.update(block)
        target.write(block)
        size += len(block)
    return size, digest.hexdigest()


@contextmanager
def _private(place: Path) -> Iterator[IO[bytes]]:
    place.unlink(missing_ok=True)
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        yield out


def flush(folder: Path) -> None:
    """Flush a folder's entries to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
