"""RESTORE, or an overwrite, by another program: rows leave a table whose versions and transactions go on as before.

An older state that is written over the newer one (INSERT OVERWRITE … VERSION AS OF, CLONE, a data frame's `overwrite`)
takes out the same rows as RESTORE does. This program does none of these.
"""

from __future__ import annotations

import json
import re

RESTORE = "accounted/restore"  # the application under which a table says that what a RESTORE took out is repaired
_COMPACTED = (
    5_000  # files whose origin is kept: a RESTORE beyond more of them is refused, though it may take nothing out
)
_RESTORE = re.compile(rb'"operation"\s*:\s*"RESTORE"')
_REPLACED = re.compile(rb'"operation"\s*:\s*"(?:CLONE|[A-Z ]*REPLACE TABLE[A-Z ]*)"')
_OVERWRITE = re.compile(rb'"mode"\s*:\s*"Overwrite"')
_COMPACTION = b'"dataChange":false'


class Restores:
    """Data files that RESTORE or an overwrite has taken out of a table and none has put back, by path: the version."""

    def __init__(self) -> None:
        self._gone: dict[str, int] = {}
        self._made_of: dict[str, frozenset[str]] = {}  # of files that hold others' rows: those

    def take(self, version: int, entry: bytes) -> None:
        """Take in an entry of the log, in their order."""
        restored = _RESTORE.search(entry)
        if restored or _REPLACED.search(entry) or (_OVERWRITE.search(entry) and _COMPACTION not in entry):
            added, removed = _paths(entry)
            for path in added:
                self._gone.pop(path, None)
            self._gone |= dict.fromkeys((path for path in removed if not self._is_in(path, added)), version)
            if not restored:
                self._note_origin(added, removed)
        elif _COMPACTION in entry:
            self._note_origin(*_paths(entry))
        elif RESTORE.encode() in entry:
            txns = (json.loads(line).get("txn") or {} for line in entry.splitlines() if RESTORE.encode() in line)
            upto = max((int(txn["version"]) for txn in txns if txn.get("appId") == RESTORE), default=0)
            self._gone = {path: by for path, by in self._gone.items() if by > upto}

    def _note_origin(self, added: set[str], removed: set[str]) -> None:
        self._made_of |= dict.fromkeys(added, frozenset(removed))
        for path in list(self._made_of)[:-_COMPACTED]:
            del self._made_of[path]

    def _is_in(self, path: str, added: set[str]) -> bool:
        """Whether a file's rows are in files that came: it was compacted of them."""
        return path in self._made_of and self._made_of[path] <= added

    @property
    def newest(self) -> int:
        """The newest version that has taken out what is not back; 0 if none."""
        return max(self._gone.values(), default=0)


def restored_text(path: str, version: int) -> str:
    """What is wrong with a table after a RESTORE or an overwrite, as a sentence."""
    return (
        f"{path}: its version {version} is a RESTORE or an overwrite by another program: rows that were committed "
        "before it are gone, and its versions and batches go on as if they were there"
    )


def _paths(entry: bytes) -> tuple[set[str], set[str]]:
    """Data files that an entry adds, and that it removes."""
    actions = [json.loads(line) for line in entry.splitlines() if line.strip()]
    added, removed = ({action[kind]["path"] for action in actions if kind in action} for kind in ("add", "remove"))
    return added, removed
