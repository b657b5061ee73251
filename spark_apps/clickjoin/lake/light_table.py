"""A table on a local disk whose looks and commits cost what is new, however many files and versions there are.

At each commit, and each look that finds one, delta-rs goes through all files of a table (4 µs each), and lists all
entries of its log. Here it is given a log of the newest entries alone (thin_log); the files from before are kept as
Arrow. Whatever else is asked of the handle is answered by the whole table, as any other handle does.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.exceptions import DeltaError

from clickjoin.kernel.filesystem import flush_commit, local_folder
from clickjoin.lake.log_end import ends_at
from clickjoin.lake.thin_log import LOG, ThinLog, folder_of

MANY = 2_000  # files, or entries of a log
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_WEIGHED_EVERY = 100  # versions
_INTERVAL, _FILES_AN_ENTRY = "delta.checkpointInterval", 1_000  # a checkpoint costs by the file: so the more, the rarer
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OSError, DeltaError, pa.ArrowException)
_AT_ONCE = 50_000  # paths, as Python's texts
_LIGHT = frozenset({
    "version", "metadata", "schema", "protocol", "transaction_version", "table_uri", "update_incremental",
    "get_add_actions", "create_write_transaction", "create", "is_deltatable",
})  # fmt: skip
_checkpoints = ThreadPoolExecutor(1, thread_name_prefix="clickjoin-checkpoints")
_log = logging.getLogger(__name__)


class Lightener:
    """Makes the handles of a process cost less where their tables are large."""

    def __init__(self) -> None:
        self._weighed: dict[str, int] = {}

    def forget(self, name: str) -> None:
        """Weigh a table again the next time: another may lie in its place."""
        self._weighed.pop(name, None)

    def of(self, name: str, table: DeltaTable) -> DeltaTable:
        """A handle on the same version as this one: the same where the table is small, or has just been weighed."""
        version = int(table.version())
        if isinstance(table, LightTable) and table.is_light:
            return table
        if name in self._weighed and version - self._weighed[name] < _WEIGHED_EVERY:
            return table
        self._weighed[name] = version
        try:
            entries = sum(1 for _ in (folder_of(table) / LOG).iterdir())
            files = pa.table(table.get_add_actions(flatten=True))
            return table if max(files.num_rows, entries) < MANY else LightTable(table, _kept(files))
        except _UNREADABLE:  # it is on no disk, or its log is not to be read by hand
            return table


def shows_newest(table: DeltaTable) -> bool:
    """Whether a handle shows its table's newest version: on a local disk that is seen without listing the log."""
    folder = None if isinstance(table, LightTable) else local_folder(table.table_uri)
    return folder is not None and ends_at(folder / LOG, int(table.version()))


def _kept(files: pa.Table) -> pa.Table:
    """Without statistics of texts, which nobody asks a log for, and which are half of what is to be held."""
    wanted = [
        field.name
        for field in files.schema
        if not field.name.startswith("null_count.")
        and not (field.name.startswith(("min.", "max.")) and pa.types.is_string(field.type))
    ]
    return files.select(wanted)


def _copied(files: pa.Table) -> pa.Table:
    """Without what delta-rs has made beside: what comes from it is held as a whole, however few columns are used."""
    count = files.num_rows
    parts = [files.slice(first, _AT_ONCE) for first in range(0, count, _AT_ONCE)]
    return pa.concat_tables([files.slice(count), *(part.take(np.arange(part.num_rows)) for part in parts)])


def _hashes(paths: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """Sorted: to tell in no time that a path is not among a million."""
    batches = (paths.slice(first, _AT_ONCE).to_pylist() for first in range(0, len(paths), _AT_ONCE))
    found = (hash(path) for batch in batches for path in batch)
    return np.sort(np.fromiter(found, np.int64, len(paths)))


class LightTable(DeltaTable):
    """The table that another handle shows, at its version. For one thread at a time. Errors: those of ThinLog."""

    def __init__(self, table: DeltaTable, files: pa.Table) -> None:
        self._uri, self._folder, self._is_behind = table.table_uri, folder_of(table), False
        self._one_commit = Lock()
        self._begin(table, files)

    def _begin(self, table: DeltaTable, files: pa.Table) -> None:
        log = ThinLog(table)
        super().__init__(log.folder)
        self._thin: ThinLog | None = log
        self._before = self._files = _copied(files)
        self._hashes = _hashes(files["path"])

    @property
    def is_light(self) -> bool:
        """Whether it still is: asked for what only a whole table can answer, it has become one."""
        return self._thin is not None

    @property
    def table_uri(self) -> str:
        """Where the table lies."""
        return self._uri

    def update_incremental(self) -> None:
        """Bring it to the table's newest version."""
        if self._thin is None:
            super().update_incremental()
            return
        behind, self._is_behind = self._is_behind, True  # until all of it has been taken in
        try:
            if behind:
                raise ValueError("a look was cut short")
            self._follow(self._thin)
        except _UNREADABLE:  # what is wrong, the whole table says
            self._become_whole(None)
            super().update_incremental()
        self._is_behind = False

    def _follow(self, log: ThinLog) -> None:
        touched = log.follow()
        if log.newest == self.version():
            return
        super().update_incremental()
        if log.newest != self.version():
            raise ValueError(f"{self._uri}: {log.newest} was read as {self.version()}")
        if touched:
            if self._may_hold(touched):
                self._before = self._before.filter(pc.invert(pc.is_in(self._before["path"], pa.array(touched))))
            recent = pa.table(super().get_add_actions(flatten=True)).select(self._before.column_names)
            self._files = pa.concat_tables([self._before, recent.cast(self._before.schema)])
        if log.is_long:
            self._begin(self, self._files)

    def _may_hold(self, paths: Sequence[str]) -> bool:
        wanted = np.array([hash(path) for path in paths], np.int64)
        at = np.searchsorted(self._hashes, wanted)
        return bool(len(self._hashes) and (self._hashes[np.minimum(at, len(self._hashes) - 1)] == wanted).any())

    def _become_whole(self, version: int | None) -> None:
        super().__init__(self._folder, version=version)
        self._thin = None
        self._before = self._files = pa.table({})

    def whole(self) -> None:
        """Become a handle on the whole table, at the version that this shows."""
        if self._thin is not None:
            self._become_whole(int(self.version()))

    def get_add_actions(self, flatten: bool = False) -> Any:
        """The files, with statistics of what is no text."""
        if flatten and self._thin is not None:
            return self._files
        self.whole()
        return super().get_add_actions(flatten=flatten)

    def create_write_transaction(self, actions: Any, mode: Any, *arguments: Any, **more: Any) -> None:
        """Commit the very next version: delta-rs checks and writes the entry, to the copy; that is what is created."""
        if mode != "append":  # it removes files, and the copy does not know those from before
            self.whole()
        with self._one_commit:  # another's copy of an entry would be taken for one's own
            self._commit(actions, mode, *arguments, **more)

    def _commit(self, *arguments: Any, **more: Any) -> None:
        if self._thin is None:
            super().create_write_transaction(*arguments, **more)
            return
        log, version = self._thin, int(self.version()) + 1
        try:
            try:
                super().create_write_transaction(*arguments, **more, post_commithook_properties=_NO_HOOKS)
            except (DeltaError, OSError):  # what is wrong, the whole table says; it may be the copy alone
                self.whole()
                super().create_write_transaction(*arguments, **more)
                return
            log.publish(version)
        except BaseException:
            log.place(version).unlink(missing_ok=True)
            raise
        self._checkpoint(version)

    def _checkpoint(self, version: int) -> None:
        """Now and then a checkpoint. Errors: none, for the commit has landed."""
        try:
            every = int((self.metadata().configuration or {}).get(_INTERVAL, 10))
            if (version + 1) % max(every, self._files.num_rows // _FILES_AN_ENTRY, 1) == 0:
                _checkpoints.submit(_write_checkpoint, self._folder, version)
        except (ValueError, RuntimeError) as error:  # an interval that is no number; a process that ends
            _log.warning("%s: no checkpoint of version %s (%s)", self._folder, version, error)


def _write_checkpoint(folder: Path, version: int) -> None:
    try:
        DeltaTable(folder, version=version).create_checkpoint()
        flush_commit(folder, version)
    except (DeltaError, OSError) as error:
        _log.warning("%s: no checkpoint of version %s (%s); the next one makes up for it", folder, version, error)


def _by_whole(name: str) -> Any:
    def found(table: LightTable) -> Any:
        table.whole()
        return getattr(super(LightTable, table), name)

    return property(found, doc=f"`{name}` of the whole table, which this then is.")


for _name in [name for name in vars(DeltaTable) if not name.startswith("__") and name not in _LIGHT]:
    setattr(LightTable, _name, _by_whole(_name))
