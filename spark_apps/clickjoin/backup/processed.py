"""What a backup takes of per-key processing: its tables, and what it takes to read on in the output from where it was.

The processing may be behind the output. Files of versions that it has not read yet may have left the output since, by
a repair or OPTIMIZE, and entries of the log may be older than the output's newest checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from clickjoin.dispatcher.journal import JournalReader, JournalState, sequences
from clickjoin.lake.location import location
from clickjoin.lake.readable import missing
from clickjoin.lake.snapshot_files import LOG, Look, PinnedTables, look
from clickjoin.lake.table_changes import ChangeLog
from clickjoin.model.places import JOINED, folder_of
from clickjoin.schemas.process import FOLDER, PROCESS
from clickjoin.sources.delta.state import newest, pieces_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickjoin.kernel.table_rows import RowFile

_JOURNAL = f"{FOLDER}/journal"


def process_looks(root: str) -> dict[str, Look]:
    """Tables of the processing, by their paths in the lake; none where it has not begun.

    Errors: LakeError where some are gone and others hold batches.
    """
    folder = f"{root}/{FOLDER}"
    found = {table.name: seen for table in PROCESS if (seen := look(folder, table.name))}
    gone = [table.name for table in PROCESS if table.name not in found]
    if gone and any(seen.version for seen in found.values()):
        raise missing(folder, gone[0])
    return {} if gone else {f"{FOLDER}/{name}": seen for name, seen in found.items()}


class UnreadOutput(NamedTuple):
    """What the processing still needs of the output: data files and files of its log, by path, and older versions.

    `batches`: tokens of its batches that are under way.
    """

    files: dict[str, int]
    log: list[str]
    versions: set[int]
    batches: tuple[str, ...]


def unread(root: str, pipeline: str, versions: Mapping[str, int]) -> UnreadOutput:
    """What the batch under way, and those after it, read of the output, as far as it is there. `versions`: of a cut."""
    found, paths = UnreadOutput({}, [], set(), ()), set[str]()
    if _JOURNAL not in versions:
        return found
    states = _states(root, pipeline, versions[_JOURNAL])
    log, place = ChangeLog(folder_of(root, JOINED)), location(folder_of(root, JOINED))
    for state in states:
        paths.update(file.path for file in _planned(state))
        for offsets in state.offsets.values():
            if (at := newest(offsets)) is None or at.version > versions[JOINED] + 1:
                continue
            if at.whole and log.files_at(at.version) is not None:
                found.versions.add(at.version)
            for number in range(max(min(at.read, at.version), 0), versions[JOINED] + 1):
                if entry := log.entry(number):
                    found.log.append(f"{LOG}/{number:020}.json")
                    paths.update(file.path for file in (*entry.added, *entry.removed, *entry.changes))
    held = ((path, place.stored(path)) for path in sorted(paths))
    found.files.update({path: stored.size for path, stored in held if stored})
    return found._replace(batches=tuple(state.unsettled.token for state in states if state.unsettled))


def _states(root: str, pipeline: str, version: int) -> list[JournalState]:
    pinned = PinnedTables(f"{root}/{FOLDER}", {"journal": version})
    return [JournalReader(pinned, pipeline, *key).load() for key in sequences(pinned)]


def _planned(state: JournalState) -> Iterator[RowFile]:
    """Files of the output that the batch under way reads."""
    for splits in state.unsettled.splits.values() if state.unsettled else ():
        for piece in (piece for split in splits for piece in pieces_of(split)):
            yield from (*piece.files, *piece.former)
