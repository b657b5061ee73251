"""Whether a table's log is still the one that was read, entry by entry: a version alone does not say so.

A store that is put back to older data has the same versions again, of other content; and Delta's RESTORE takes rows out
of a table whose versions and transactions go on as if they were there.
"""

from __future__ import annotations

import hashlib

import pyarrow.fs as pafs

from clickjoin.kernel.filesystem import filesystem
from clickjoin.lake.log_entries import read_entry
from clickjoin.lake.restores import Restores, restored_text
from clickjoin.model.errors import LakeError, LakeReplaced

_LOG = "_delta_log"
_CHECKPOINT = b"checkpoint"  # in the place of an entry's digest: old entries are cleaned up
_HEAD = 1 << 16  # bytes of an entry that tell it from any other: a nonce, or names of files that are random


class Watched:
    """The log of the table at a path, as one process follows it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._version, self._digest = -1, b""
        self._restores = Restores()

    def follow(self, place: str, version: int) -> None:
        """Take in the entries up to a version. `place`: the table, or the folder where a copy of its log lies.

        Errors: LakeReplaced where the version that was taken in last is another, or gone; LakeError after a RESTORE.
        """
        files, root = filesystem(place)
        folder = f"{root}/{_LOG}"
        if self._version >= 0:
            self._require_same(files, folder, version)
            for number in range(self._version + 1, version + 1):
                try:
                    self._restores.take(number, read_entry(files, folder, number))
                except (FileNotFoundError, ValueError):  # cleaned up, as nobody has looked for so long; or torn
                    continue
        if version != self._version:
            self._version, self._digest = version, self._seen(files, folder, version)
        if newest := self._restores.newest:
            raise LakeError(
                restored_text(self.path, newest),
                remedy=f"Undo it: RESTORE TABLE delta.`{self.path}` TO VERSION AS OF {newest - 1}; or stop the "
                "joins: the next one that starts says how to repair what went",
            )

    def _require_same(self, files: pafs.FileSystem, folder: str, version: int) -> None:
        seen = self._seen(files, folder, self._version)
        cleaned = seen == _CHECKPOINT or (not seen and version > self._version)
        if seen != self._digest and not cleaned:
            raise older_data(self.path, self._version)

    def _seen(self, files: pafs.FileSystem, folder: str, version: int) -> bytes:
        try:
            return _digest(files, f"{folder}/{version:020}.json")
        except FileNotFoundError:
            kept = files.get_file_info(f"{folder}/{version:020}.checkpoint.parquet")
            return b"" if kept.type == pafs.FileType.NotFound else _CHECKPOINT


def _digest(files: pafs.FileSystem, path: str) -> bytes:
    with files.open_input_stream(path) as file:
        return hashlib.blake2b(file.read(_HEAD), digest_size=16).digest()


def older_data(path: str, version: int) -> LakeReplaced:
    """The error of a process under which a store was put back."""
    return LakeReplaced(
        f"{path}: version {version} is not what this process has read there: older data was put in its place",
        remedy="Start it again: it then says whether the tables fit together, and reads on from what is there",
    )
