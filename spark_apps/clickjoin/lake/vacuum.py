"""Removing data files and log files that nobody needs any more, by the lake's own times alone.

Delta's VACUUM uses the clock of the process that runs it, and times that others' clocks have put into the log. Here
a file's age is how long ago the store says it was written, and what a reader may still need is derived from the log:
the files of the version that was the newest at the cut-off, whatever a later commit has removed; and of versions that a
plan names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from clickjoin.kernel.id_filter import FOLDER, place_of
from clickjoin.lake.location import LOG, Stored, location
from clickjoin.lake.store_options import store_options

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

_LOG_SECONDS = 3 * 86400.0  # what small.settings gives the tables as delta.logRetentionDuration
_COMMIT_SECONDS = 3600.0  # a file is committed so long after it was written at most, or its batch is under way
_CHANGES = "_change_data"
_LOG_FILE = re.compile(
    r"\.?(\d{20})\.(json(\.[0-9a-f]{32})?|crc|checkpoint(\.\d{10}\.\d{10})?\.parquet|checkpoint\.[-\w]+\.\w+)(\.crc)?"
)
Log = Sequence[tuple[int, Stored]]


@dataclass(frozen=True)
class Needed:
    """What has to stay of a table: `since`, versions from that time on (seconds since 1970, by the lake's clock).

    `versions`: those that a plan under way names. `written`: no uncommitted file that is younger than this.
    """

    since: float
    versions: tuple[int, ...] = ()
    written: float = float("inf")


def vacuum(delta: DeltaReader, name: str, needed: Needed, *, dry_run: bool = False) -> list[str]:
    """Remove data files that no version that is needed has; returns their paths. Those without a log entry go too."""
    root = delta.path(name)
    # In this order: what is committed between the two looks is in the version, and what is written then is young.
    place = location(root)
    files = [file for file in (*place.listed(), *place.listed(_CHANGES)) if _is_data(file.path)]
    valid = _files(delta.open(name))
    before = min(needed.since - _COMMIT_SECONDS, needed.written)
    old = [file.path for file in files if file.at < before and file.path not in valid]
    if not old:
        return []
    valid |= _readable(root, needed.since)
    for version in needed.versions:
        valid |= _version(root, version) or set()
    going = [path for path in old if path not in valid]
    if not dry_run:
        location(root).remove(going)
    return going


def remove_filters(root: str) -> list[str]:
    """Remove filters of the registry's data files that have gone; returns their paths. One too many is made again."""
    place = location(root)
    there = {place_of(_name(file)) for file in place.listed()}
    going = [file.path for file in place.listed(FOLDER) if file.path not in there]
    place.remove(going)
    return going


def clean_log(delta: DeltaReader, name: str, now: float, needed: Needed) -> int:
    """Write a checkpoint, and remove log files from before one that are three days old. Returns how many.

    Whole or not at all up to some version, so that every later one can still be read.
    """
    root = delta.path(name)
    delta.open(name).create_checkpoint()
    log = _log(root)
    cut = min(now - _LOG_SECONDS, needed.since)
    keep = [version for version, file in log if file.at >= cut] + list(needed.versions)
    last = min([*keep, _newest_at(log, needed.since)])  # the oldest version that has to be readable
    checkpoints = [version for version, file in log if _name(file) == f"{version:020}.checkpoint.parquet"]
    first = max((version for version in checkpoints if version <= last), default=0)
    going = [file.path for version, file in log if version < first]
    location(root).remove(going)
    return len(going)


def is_whole(delta: DeltaReader, name: str, version: int) -> bool:
    """Whether a version of a table can still be read: its log, and every file that it names."""
    root = delta.path(name)
    try:
        table = DeltaTable(root, version=version, storage_options=store_options(root))
        return all(location(root).stored(path) for path in _files(table))
    except DeltaError:
        return False


def _newest_at(log: Log, moment: float) -> int:
    """The version that was the newest at a moment; the oldest that there is where all are younger."""
    commits = sorted((version, file.at) for version, file in log if file.path.endswith(".json"))
    # Of several hosts' clocks the later time may be on the earlier version: the first young one ends the search.
    young = next((number for number, (_, at) in enumerate(commits) if at > moment), len(commits))
    return commits[max(young - 1, 0)][0]


def _readable(root: str, since: float) -> set[str]:
    """Files of the version that was the newest at a moment; of the next one that can be read where its log is gone."""
    log = _log(root)
    first = _newest_at(log, since)
    for version in sorted(version for version, file in log if version >= first and file.path.endswith(".json")):
        found = _version(root, version)
        if found is not None:
            return found
    return set()


def _version(root: str, version: int) -> set[str] | None:
    try:
        return _files(DeltaTable(root, version=version, storage_options=store_options(root)))
    except DeltaError:
        return None


def _files(table: DeltaTable) -> set[str]:
    return {unquote(str(path)) for path in table.get_add_actions(flatten=True)["path"].to_pylist()}


def _log(root: str) -> Log:
    """Files of a table's log with their versions."""
    files = location(root).listed(LOG)
    return [(int(match[1]), file) for file in files if (match := _LOG_FILE.fullmatch(_name(file)))]


def _name(file: Stored) -> str:
    return file.path.rpartition("/")[2]


def _is_data(path: str) -> bool:
    """Whether a path is that of a data file: what begins with an underscore is Delta's own, with a dot Spark's.

    A change data feed's files are named by no version, but by the commit that made them: they go once they are old.
    """
    path = path.removeprefix(f"{_CHANGES}/")
    return path.endswith(".parquet") and not any(part.startswith(("_", ".")) for part in path.split("/"))
