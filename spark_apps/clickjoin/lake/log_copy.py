"""A copy of a table's log in this process's own folder, kept abreast of the log on S3 by a request a look.

delta-rs reads the copy as it reads a log on a disk, so what a table holds is its word and not ours. On S3 itself it
lists the log, asks for the pointer to a checkpoint, and reads each entry twice, at every look.

Entries of a log have no gaps: where the next one is not there, the copy's newest is the table's. That holds as long as
entries are not cleaned up, which takes days; a copy that was not looked after for some minutes is made from the start.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
import weakref
from pathlib import Path
from shutil import rmtree
from typing import IO

from clickjoin.lake.log_entries import POINTER
from clickjoin.lake.log_load import LOG, LoadedLog, begin_of, load_one, now
from clickjoin.lake.objects import Objects
from clickjoin.lake.side_by_side import each

_LONGEST_SECONDS = 600.0  # without a look, by a clock that goes on while a machine sleeps; entries live for days
_MOST_ENTRIES = 500  # of a copy: delta-rs reads all since its checkpoint for some questions
_AHEAD = 8  # entries that are asked for at once where a copy is behind
_PREFIX, _LOCK = "clickjoin-logs-", "lock"
_home: dict[int, tuple[Path, IO[str]]] = {}
_making = threading.Lock()


class LogCopy:
    """The log of one table at a URI, as it was at the last look. Errors: OSError, TableNotFoundError."""

    def __init__(self, uri: str, loaded: LoadedLog | None = None) -> None:
        self._uri, self._objects = uri, Objects(uri)
        self._take_all(loaded or load_one(uri))

    @property
    def is_fresh(self) -> bool:
        """Whether no entry after its newest can have been cleaned up since the last look."""
        return now() - self._looked < _LONGEST_SECONDS

    def follow(self) -> bool:
        """Take in the entries that have come; whether the copy was made from the start, in another folder."""
        if not self.is_fresh or self.newest - self._first > _MOST_ENTRIES:
            self._take_all(load_one(self._uri))
            return True
        looked, found = now(), self._next(1)
        while found and None not in found:
            found = self._next(_AHEAD)
        self._looked = looked
        return False

    def _next(self, count: int) -> list[bytes | None]:
        """Take in some entries that come next, as many as there are; None in the place of one that is not."""
        wanted = [self.newest + 1 + n for n in range(count)]
        found = each(self.entry, wanted)
        for version, data in zip(wanted, found, strict=True):
            if data is None:
                break
            self.take(version, data)
        return found

    def entry(self, version: int) -> bytes | None:
        """An entry as it is on S3; None where it is not there."""
        return self._objects.get(f"{LOG}/{_name(version)}")

    def is_cleaned(self, version: int) -> bool:
        """Whether a checkpoint on S3 stands for an entry that is not there (any more)."""
        own = f"{version:020}.checkpoint"
        return any(name.startswith(own) for name in self._objects.listed(LOG, f"{version:020}"))

    def create(self, version: int, data: bytes) -> bool:
        """Create an entry on S3; False where it is there."""
        return self._objects.create(f"{LOG}/{_name(version)}", data)

    def take(self, version: int, data: bytes) -> None:
        """Add an entry that is on S3 to the copy."""
        self.place(version).write_bytes(data)
        self.newest = version

    def send_checkpoint(self, folder: Path, version: int) -> None:
        """Put a checkpoint that was made of a copy beside the entries on S3, and then the pointer to it."""
        pointer = (folder / LOG / POINTER).read_bytes()
        made = list((folder / LOG).glob(f"{version:020}.checkpoint*.parquet"))
        if not made or begin_of(pointer) != version:
            raise FileNotFoundError(f"{folder}: holds no checkpoint of version {version}")
        for file in made:
            self._objects.create(f"{LOG}/{file.name}", file.read_bytes())
        self._objects.put(f"{LOG}/{POINTER}", pointer)

    def place(self, version: int) -> Path:
        """Where an entry's copy is."""
        return self.folder / LOG / _name(version)

    def _take_all(self, loaded: LoadedLog) -> None:
        self.folder = new_folder(self)
        for name, data in loaded.files.items():
            file = self.folder / LOG / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        versions = loaded.versions
        self._first, self.newest, self._looked = min(versions), max(versions), loaded.looked


def _name(version: int) -> str:
    return f"{version:020}.json"


def new_folder(owner: object) -> Path:
    """A new folder for a copy of a log, which goes with its owner, or with this process."""
    folder = Path(tempfile.mkdtemp(dir=_folder()))
    weakref.finalize(owner, _remove, folder, os.getpid())
    return folder


def _remove(folder: Path, maker: int) -> None:
    if os.getpid() == maker:  # a process forked off it has the owner too
        rmtree(folder, ignore_errors=True)


def _folder() -> Path:
    """This process's folder for copies. Folders of processes that were killed are removed by the next."""
    with _making:  # or of two threads that begin at once one has its folder removed with the lock that is dropped
        if os.getpid() not in _home:
            _sweep()
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            lock = (folder / _LOCK).open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
            weakref.finalize(lock, _remove, folder, os.getpid())
            _home[os.getpid()] = folder, lock
        return _home[os.getpid()][0]


def _sweep() -> None:
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            with place.open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # it is alive, or another's
            continue
        rmtree(place.parent, ignore_errors=True)
