"""Making a log whole again whose entries a disk has lost: each is replaced by an entry that commits nothing.

So versions stay what they were. What was committed with the entry is lost anyway: the journal knows what that
was. What lay there is kept below the table's folder, in `_torn`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from clickjoin.kernel.filesystem import filesystem, make_folder
from clickjoin.lake.log_entries import COMMIT, POINTER, TableLog, Torn, read_log
from clickjoin.model.errors import LakeError

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

_ASIDE = "_torn"
_DIGEST = re.compile(r"(?:(\d{20})\.crc|\.(\d{20})\.json\.crc)")


def can_fill(log: TableLog) -> bool:
    """Whether single entries are torn. Where a checkpoint is gone too that others began from, files would be lost."""
    gone = [torn for torn in log.torn if torn.why == "is missing"]
    return bool(log.torn and log.table_id) and not (gone and any(torn.checkpoint for torn in log.torn))


def fill(delta: DeltaReader, name: str) -> Sequence[Torn]:
    """Make a table's log whole; returns what was torn. Nobody may write to the table meanwhile."""
    log = read_log(delta.path(name))
    if not can_fill(log):
        return ()
    files, root = filesystem(delta.path(name))
    make_folder(files, f"{root}/{_ASIDE}")
    _keep_aside(files, root, log.torn)
    _drop_digests(files, root, min(torn.version for torn in log.torn))
    for torn in log.torn:
        place = f"{root}/_delta_log/{torn.file}"
        if not torn.checkpoint:
            _replace(files, place)
        elif torn.file != POINTER:  # that one is gone with the digests
            files.delete_file(place)
    delta.forget(name)
    return log.torn


def drop_checksums_ahead(path: str) -> bool:
    """Remove checksums of versions that a table's log does not have (any more); whether there were any.

    Spark writes one after its commit. A disk that loses the commit and keeps the checksum leaves a log that engines
    refuse, or whose next commit they would take for the one that is gone. Engines do without a checksum, so this may
    come at any time. Errors: LakeError where it may not be removed.
    """
    files, root = filesystem(path)
    found = [info.path for info in files.get_file_info(pafs.FileSelector(f"{root}/_delta_log", allow_not_found=True))]
    last = max((int(match[1]) for place in found if (match := COMMIT.fullmatch(_name(place)))), default=-1)
    early = [
        place for place in found if (match := _DIGEST.fullmatch(_name(place))) and int(match[1] or match[2]) > last
    ]
    for place in early:
        try:
            files.delete_file(place)
        except FileNotFoundError:
            continue  # another process was first
        except OSError as error:
            raise LakeError(
                f"{place}: is the checksum of a commit that is not there, and cannot be removed ({error})",
                remedy="Remove the file, as a user who may: the table is whole without it",
            ) from error
    return bool(early)


def _name(place: str) -> str:
    return place.rsplit("/", 1)[-1]


def _keep_aside(files: pafs.FileSystem, root: str, torn: Sequence[Torn]) -> None:
    for one in torn:
        if one.why != "is missing":
            files.copy_file(f"{root}/_delta_log/{one.file}", f"{root}/{_ASIDE}/{one.file}")


def _replace(files: pafs.FileSystem, place: str) -> None:
    info = {"timestamp": int(time.time() * 1000), "operation": "LOST COMMIT", "operationParameters": {}}
    with files.open_output_stream(f"{place}.filling") as out:
        out.write(json.dumps({"commitInfo": info}).encode() + b"\n")
    files.move(f"{place}.filling", place)


def _drop_digests(files: pafs.FileSystem, root: str, since: int) -> None:
    """Checksums of entries, and the pointer to a checkpoint, that may speak of what is gone: engines do without."""
    for info in files.get_file_info(pafs.FileSelector(f"{root}/_delta_log")):
        match = _DIGEST.fullmatch(info.base_name)
        if info.base_name == POINTER or (match and int(match[1] or match[2]) >= since):
            files.delete_file(info.path)
