"""A table's Delta log, read by hand: its transactions, and entries that no writer can have left as they are.

Both committers create an entry whole; what is empty, cut short or missing between others was left so by a disk. An
engine takes an empty entry for a commit of nothing, and so does not notice.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from clickjoin.kernel.filesystem import filesystem
from clickjoin.lake.restores import Restores
from clickjoin.model.store_faults import not_read

COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:[0-9a-f-]{36}\.)?(?:(\d{10})\.(\d{10})\.)?parquet")
POINTER = "_last_checkpoint"
_LOOKS, _PAUSE = 3, 0.05
_BACK = 50  # entries before a checkpoint in which a RESTORE is looked for
_AT_ONCE = 8  # requests for entries, where each is one
_GONE, _EMPTY, _CUT = "is missing", "is empty", "is cut short"


@dataclass(frozen=True)
class Torn:
    """An entry of a log, or a checkpoint, that is not what a writer wrote: its name, and what is wrong with it."""

    file: str
    why: str
    version: int
    checkpoint: bool = False


@dataclass(frozen=True)
class TableLog:
    """What a log says: newest version, the table's id and settings, the newest transaction of each application."""

    version: int = -1
    table_id: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    txns: Mapping[str, int] = field(default_factory=dict)
    torn: tuple[Torn, ...] = ()
    put_back: int = 0  # the newest RESTORE whose rows are not back, of those among the newest entries; 0 for none


@dataclass
class LogState:
    """What the entries of a log add up to, taken in one after another."""

    table_id: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    txns: dict[str, int] = field(default_factory=dict)
    restores: Restores = field(default_factory=Restores)

    def take_entry(self, data: bytes, version: int) -> str:
        """Take in what the entry of a version holds; returns what is wrong with it, or nothing."""
        lines = [line for line in data.splitlines() if line.strip(b"\0 \t")]
        if not lines:
            return _EMPTY
        try:
            found = [json.loads(line) for line in _telling(lines)]
            self.restores.take(version, data)
        except ValueError:
            return _CUT
        for action in found:
            self.take(action)
        return ""

    def take(self, action: Mapping[str, Any]) -> None:
        """Take in one action of an entry or a checkpoint."""
        if txn := action.get("txn"):
            self.txns[txn["appId"]] = int(txn["version"])  # the last one holds, as to Delta: dates are released so
        if meta := action.get("metaData"):
            self.table_id, self.settings = meta["id"], dict(meta["configuration"] or ())


def read_log(path: str, upto: int | None = None) -> TableLog:
    """The log of the table at a path, from its newest readable checkpoint on; an empty TableLog where there is none.

    `upto`: as of that version, unless the log does not reach so far.
    """
    found = TableLog()
    for _ in range(_LOOKS):
        try:
            found = _Log(path, upto).read()
        except FileNotFoundError:  # cleaned up between the look at the folder and the look at the file
            continue
        if not found.torn:
            break
        time.sleep(_PAUSE)  # a listing may miss an entry that was added beside it
    return found


class _Log:
    def __init__(self, path: str, upto: int | None = None) -> None:
        self._files, root = filesystem(path)
        self._root, self._whole = f"{root}/_delta_log", upto is None
        most = float("inf") if upto is None else upto
        self.commits: dict[int, int] = {}  # bytes, by version
        self.checkpoints: dict[int, list[str]] = {}
        infos = self._files.get_file_info(pafs.FileSelector(self._root, allow_not_found=True))
        self.names = [info.base_name for info in infos]
        for name, size in sorted((info.base_name, info.size) for info in infos):
            if (match := COMMIT.fullmatch(name)) and int(match[1]) <= most:
                self.commits[int(match[1])] = size
            elif (match := _CHECKPOINT.fullmatch(name)) and int(match[1]) <= most:
                self.checkpoints.setdefault(int(match[1]), []).append(name)

    def read(self) -> TableLog:
        state, torn = LogState(), []
        begin = -1
        for version in sorted(self.checkpoints, reverse=True):
            try:
                for name in self.checkpoints[version]:
                    self._checkpoint(name, state)
            except (pa.ArrowInvalid, OSError) as error:
                if isinstance(error, FileNotFoundError):
                    raise
                torn += [Torn(name, "cannot be read", version, True) for name in self.checkpoints[version]]
                state = LogState()
            else:
                begin = version
                break
        torn += self._pointer()
        self._look_back(begin, state)
        last = max([begin, *self.commits])
        if self._whole and begin == last >= 0 and begin not in self.commits:  # delta-rs commits nothing on top of it
            torn.append(Torn(f"{begin:020}.json", _GONE, begin))
        for version, data in self._entries(range(begin + 1, last + 1)):
            why = _GONE if data is None else state.take_entry(data, version)
            torn += [Torn(f"{version:020}.json", why, version)] if why else []
        return TableLog(last, state.table_id, state.settings, state.txns, tuple(torn), state.restores.newest)

    def _look_back(self, begin: int, state: LogState) -> None:
        """RESTORE writes a checkpoint of its own, so it is looked for before that too."""
        for version in sorted(version for version in self.commits if begin - _BACK < version <= begin):
            try:
                state.restores.take(version, read_entry(self._files, self._root, version))
            except ValueError:  # torn, and of no matter: the checkpoint holds what it said
                continue

    def _pointer(self) -> list[Torn]:
        """The pointer to a checkpoint that is not there: engines look for that one, and for no other."""
        try:
            with self._files.open_input_stream(f"{self._root}/{POINTER}") as file:
                version = int(json.loads(file.read())["version"])
        except (OSError, ValueError, KeyError, TypeError):  # none, or one that engines do without
            return []
        if any(name.startswith(f"{version:020}.checkpoint.") for name in self.names):
            return []
        return [Torn(POINTER, f"names checkpoint {version}, which is not there", version, True)]

    def _checkpoint(self, name: str, state: LogState) -> None:
        place = f"{self._root}/{name}"
        try:
            with self._files.open_input_file(place) as file:
                rows = pq.read_table(file, columns=["txn", "metaData"])
        except (pa.ArrowException, OSError) as error:
            raise not_read(place, error) or error from error  # what is taken for torn, a repair puts aside
        for column in rows.column_names:
            for value in rows[column].drop_null().to_pylist():
                state.take({column: value})

    def _entries(self, versions: range) -> Iterable[tuple[int, bytes | None]]:
        """What entries hold, by version; None for one that is not there."""
        if isinstance(self._files, pafs.LocalFileSystem):
            return zip(versions, map(self._entry, versions), strict=True)
        with ThreadPoolExecutor(_AT_ONCE) as pool:  # each is a request, whose answer takes its time
            return list(zip(versions, pool.map(self._entry, versions), strict=True))

    def _entry(self, version: int) -> bytes | None:
        if version not in self.commits:
            return None
        return read_entry(self._files, self._root, version)


def read_entry(files: pafs.FileSystem, folder: str, version: int) -> bytes:
    """One entry of the log that lies in a folder. Errors: FileNotFoundError."""
    with files.open_input_stream(f"{folder}/{version:020}.json") as file:
        return bytes(file.read())


def _telling(lines: list[bytes]) -> Iterable[bytes]:
    """The lines that hold a transaction or settings, and the last: if that is whole, all are."""
    return [line for line in lines[:-1] if line[:24].find(b'"txn"') >= 0 or b'"metaData"' in line[:24]] + lines[-1:]
