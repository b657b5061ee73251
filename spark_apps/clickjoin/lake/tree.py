"""The port of a whole folder, wherever it lies: copied file by file, given another name, removed, held by one process.

Backups and restores are written against it. Paths are relative to the folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import IO, Protocol

from clickjoin.lake.local_tree import LocalTree
from clickjoin.model.places import is_on_s3

Found = tuple[int, str]  # a file's bytes, and its SHA-256 in hex


class Tree(Protocol):
    """A folder and all below it. `renames_at_once`: another name is one step, and not a copy of each file."""

    root: str
    renames_at_once: bool

    @property
    def name(self) -> str:
        """The last part of where it lies."""
        ...

    @property
    def parent(self) -> Tree:
        """The folder that it lies in."""
        ...

    def at(self, path: str) -> Tree:
        """A folder below it."""
        ...

    def beside(self, ending: str) -> Tree:
        """The folder whose name goes on so."""
        ...

    def resolved(self) -> Tree:
        """The folder itself, where this is a link to one."""
        ...

    def is_link(self) -> bool:
        """Whether it is a link to another."""
        ...

    def exists(self) -> bool:
        """Whether it is there."""
        ...

    def make(self, *, shared: bool = False) -> None:
        """Make it where it has to be made: for its owner alone, unless it is shared."""
        ...

    def children(self) -> list[str]:
        """Names of the folders in it, sorted, links to folders as well."""
        ...

    def files(self, folder: str = "") -> dict[str, int]:
        """All files below it, or below a folder of it: bytes by path."""
        ...

    def size(self, path: str) -> int | None:
        """Bytes of a file; None where it is not there."""
        ...

    def digest(self, path: str) -> Found:
        """What a file holds. Errors: FileNotFoundError."""
        ...

    def read(self, path: str) -> bytes | None:
        """A file; None where it is not there."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write a file: whole, durably, or not at all."""
        ...

    def open(self, path: str) -> IO[bytes]:
        """A file, to read from its start to its end. Errors: FileNotFoundError."""
        ...

    def prepare(self, paths: Iterable[str]) -> None:
        """Make the folders that files at some paths will lie in."""
        ...

    def copy(self, path: str, source: Tree) -> Found:
        """Take over a file of another folder, whole or not at all. Errors: FileNotFoundError where it is gone."""
        ...

    def lend(self, path: str, held: Tree) -> bool:
        """Take over a file that never changes, where the store can do it by itself: it is not read."""
        ...

    def settle(self, like: Tree) -> None:
        """Have all that was copied durable, and as private as in the folder that it is a copy of."""
        ...

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files."""
        ...

    def discard(self, first: str = "") -> None:
        """Remove it with all below it, `first` first."""
        ...

    def rename(self, to: Tree, *, last: str = "", but: str = "") -> None:
        """Give it another name. Where that is no one step `last` comes there last, and `but` stays behind."""
        ...

    def alone(self, name: str, what: str) -> AbstractContextManager[Tree]:
        """Hold a lock in it; gives the folder as which, and below and beside which, the holder alone changes files.

        Errors: ConfigError where another process does `what`; LakeError from a change after the lock was lost.
        """
        ...


def tree(place: str) -> Tree:
    """The folder at a path or URI."""
    if not is_on_s3(place):
        return LocalTree(place)
    from clickjoin.lake.stored_tree import StoredTree  # and boto3 with it, where it is needed

    return StoredTree(place)
