"""The logs of tables on S3 as they lie there, of many tables in as many waits as of one.

First the pointers to checkpoints, of all tables side by side, then what lies from there on, then what those files hold.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deltalake.exceptions import TableNotFoundError

from clickjoin.lake.log_entries import COMMIT, POINTER
from clickjoin.lake.objects import Objects
from clickjoin.lake.side_by_side import each

LOG = "_delta_log"


def now() -> float:
    """Seconds, by a clock that goes on while a machine sleeps, and that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LoadedLog(NamedTuple):
    """The files of a log from its last checkpoint on, by their names, and when the look at them began."""

    looked: float
    files: Mapping[str, bytes]

    @property
    def versions(self) -> list[int]:
        """Versions whose entries are among them."""
        return [int(found[1]) for found in map(COMMIT.fullmatch, self.files) if found]


def load_one(uri: str) -> LoadedLog:
    """The log of the table at a URI. Errors: OSError, TableNotFoundError."""
    (found,) = load((uri,))
    if found is None:
        raise TableNotFoundError(f"no log at {uri}")
    return found


def load(uris: Sequence[str]) -> list[LoadedLog | None]:
    """The log of the table at each URI; None where there is none. Errors: OSError."""
    looked, logs = now(), [Objects(uri) for uri in uris]
    pointers = each(lambda log: log.get(f"{LOG}/{POINTER}"), logs)
    listed = each(lambda one: _names(*one), list(zip(logs, pointers, strict=True)))
    wanted = [(number, name) for number, names in enumerate(listed) for name in names]
    read = each(lambda one: logs[one[0]].get(f"{LOG}/{one[1]}"), wanted)
    files: list[dict[str, bytes]] = [{} for _ in uris]
    for (number, name), data in zip(wanted, read, strict=True):
        if data is not None:  # else it was cleaned up just now
            files[number][name] = data
    for held, pointer in zip(files, pointers, strict=True):
        if pointer is not None:
            held[POINTER] = pointer
    found = [LoadedLog(looked, held) for held in files]
    return [log if log.versions else None for log in found]


def _names(log: Objects, pointer: bytes | None) -> list[str]:
    begin = begin_of(pointer)
    names = [name for name in log.listed(LOG, f"{begin:020}" if begin else "") if not _is_aside(name)]
    if names or not begin:
        return names
    return [name for name in log.listed(LOG) if not _is_aside(name)]  # it points past the end: a log is there


def begin_of(pointer: bytes | None) -> int:
    """The version of the checkpoint that a pointer names; 0 where it names none."""
    try:
        return int(json.loads(pointer or b"")["version"])
    except (ValueError, KeyError, TypeError):
        return 0  # none, or one that says nothing: engines read all


def _is_aside(name: str) -> bool:
    return name.endswith(".crc") or name == POINTER or name.startswith(".")
