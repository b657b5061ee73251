"""Whole tables of a lake as folders: moved aside, moved into place, removed.

On a local disk a rename is one step. On an object store each file is copied and then removed, in an order in which a
reader finds the whole table or none (table_order.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING

from clickjoin.lake.snapshot_files import look
from clickjoin.lake.tree import tree

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.lake.tree import Tree

ASIDE = ".put-aside-"  # in the name of a table that was put aside, before the time
_LOCK = ".tables.lock"


class TableFolders:
    """The tables of a lake, for anyone who may move them."""

    def __init__(self, delta: DeltaReader, root: Tree) -> None:
        self._delta, self._root = delta, root

    def remove(self, name: str) -> None:
        """Remove a table and all its files, if it is there."""
        folder = self._root.at(name)
        if folder.exists():
            folder.discard()
        self._delta.forget(name)

    def put_aside(self, name: str, now: datetime) -> str:
        """Give a table another name, which none has yet, and return where it is then."""
        first = f"{name}{ASIDE}{now:%Y%m%dT%H%M%SZ}"
        names = (f"{first}-{number}" if number else first for number in count())
        aside = next(free for free in names if not self._root.at(free).exists())
        self.rename(name, aside)
        return self._delta.path(aside)

    def newest_aside(self, name: str) -> int:
        """The newest version of what was put aside of a table, now or by a process that was killed; 0 of nothing."""
        asides = (folder for folder in self._root.children() if folder.startswith(f"{name}{ASIDE}"))
        return max((seen.version for seen in (look(self._delta.root, folder) for folder in asides) if seen), default=0)

    def rename(self, name: str, to: str) -> None:
        """Give a table another name."""
        self._root.at(name).rename(self._root.at(to))
        self._delta.forget(name)
        self._delta.forget(to)


@contextmanager
def moving_tables(delta: DeltaReader, what: str) -> Iterator[TableFolders]:
    """Be the only process that moves tables of this lake; on S3 each change asks first whether it is so still.

    A process that was paused in the middle of it could else move what another has put there meanwhile.
    Errors: ConfigError where another does `what`; LakeError of a change after another has taken over.
    """
    with tree(delta.root).alone(_LOCK, what) as root:
        yield TableFolders(delta, root)
