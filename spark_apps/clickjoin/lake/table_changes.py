"""What each version of someone's Delta table added and took away: its log, read entry by entry.

Only entries are read here, and files' footers where the log keeps no statistics. What is new in them a source decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from clickjoin.kernel.file_bytes import fingerprint
from clickjoin.kernel.filesystem import filesystem
from clickjoin.kernel.table_rows import RowFile
from clickjoin.lake.log_entries import COMMIT, read_entry
from clickjoin.lake.others_table import opened, require_plain, require_whole_files, typed_value, vectors
from clickjoin.lake.restored_log import is_filler
from clickjoin.model.errors import SourceError

FILLER = "restored"


@dataclass(frozen=True)
class Entry:
    """One version: files that bring rows, files that take rows away, files of changes (CDF); not those of rewriting.

    `at`: when it was committed, seconds since 1970, as its writer says; `mark`: a fingerprint of the entry; `table_id`:
    empty where it is as before; `restored`: it stands for versions that a restore took away.
    """

    version: int
    at: float = 0
    mark: str = ""
    table_id: str = ""
    operation: str = ""
    added: tuple[RowFile, ...] = ()
    removed: tuple[RowFile, ...] = ()
    changes: tuple[RowFile, ...] = ()
    restored: bool = False

    @property
    def rewrites(self) -> bool:
        """Whether what it adds may hold rows that the table had before."""
        return bool(self.added and self.removed) or bool(self.changes)


@dataclass(frozen=True)
class Facts:
    """What a table is, as of its newest version: its id, and types of its partition columns."""

    version: int
    table_id: str
    partitions: Mapping[str, str] = field(default_factory=dict)


class ChangeLog:
    """The log of the table at a path. Entries that have been read are kept, the last of them."""

    KEPT = 4_000

    def __init__(self, path: str) -> None:
        self._path = path
        self._files, base = filesystem(path)
        self._root, self._log = base.rstrip("/"), f"{base.rstrip('/')}/_delta_log"
        self._facts: Facts | None = None
        self._entries: dict[int, Entry] = {}
        self._whole: tuple[int, tuple[RowFile, ...]] | None = None

    def facts(self, *, again: bool = False) -> Facts | None:
        """The table as of now; None where none is. What was known is given, unless it is asked for again.

        Errors: SourceError for a table whose files do not say what its rows are.
        """
        if again or self._facts is None:
            self._facts = self._look()
        return self._facts

    def _look(self) -> Facts | None:
        table = opened(self._path)
        if table is None:
            return None
        metadata = table.metadata()
        require_plain(self._path, metadata.configuration)
        kinds = {item.name: str(getattr(item.type, "type", "")) for item in table.schema().fields}
        partitions = {name: kinds.get(name, "") for name in metadata.partition_columns}
        return Facts(int(table.version()), str(metadata.id), partitions)

    def next_after(self, version: int) -> int | None:
        """The first version from this one on whose entry is there; None where there is none."""
        infos = self._files.get_file_info(pafs.FileSelector(self._log, allow_not_found=True))
        found = (COMMIT.fullmatch(info.base_name) for info in infos)
        return min((int(name[1]) for name in found if name and int(name[1]) >= version), default=None)

    def is_there(self) -> bool:
        """Whether the folder of its log can be seen: else nothing can be said of what it lacks."""
        return bool(self._files.get_file_info(self._log).type == pafs.FileType.Directory)

    def entry(self, version: int) -> Entry | None:
        """One version; None where its entry is not there. Errors: SourceError where nothing can be made of it."""
        if version in self._entries:
            return self._entries[version]
        data = self._data(version)
        if data is None:
            return None
        self._entries[version] = found = self._entry(version, data)
        while len(self._entries) > self.KEPT:
            del self._entries[min(self._entries)]
        return found

    def mark(self, version: int) -> str | None:
        """The fingerprint of the entry that is there now; None where there is none; FILLER where a restore left it."""
        data = self._data(version)
        if data is None:
            return None
        return FILLER if is_filler(data) else fingerprint(data)

    def forget(self) -> None:
        """Read all of it again: another table lies there, or an older state of it."""
        self._entries.clear()
        self._facts = self._whole = None

    def files_at(self, version: int) -> tuple[RowFile, ...] | None:
        """All files of the table at a version, oldest first; None where the log does not reach back to it."""
        if self._whole is None or self._whole[0] != version:
            files = self._files_at(version)
            self._whole = None if files is None else (version, files)
        return self._whole[1] if self._whole else None

    def _files_at(self, version: int) -> tuple[RowFile, ...] | None:
        try:
            table = DeltaTable(self._path, version=version)
            actions = pa.table(table.get_add_actions()).to_pylist()
        except (DeltaError, FileNotFoundError):
            return None
        require_whole_files(table, self._path)
        actions.sort(key=lambda action: (action["modification_time"], action["path"]))
        return tuple(
            self._file(
                unquote(action["path"]), action.get("partition") or {}, action["num_records"], action["size_bytes"]
            )
            for action in actions
        )

    def _data(self, version: int) -> bytes | None:
        try:
            return read_entry(self._files, self._log, version)
        except FileNotFoundError:
            return None

    def _entry(self, version: int, data: bytes) -> Entry:
        if is_filler(data):
            return Entry(version, mark=fingerprint(data), restored=True)
        try:
            actions = [json.loads(line) for line in data.splitlines() if line.strip()]
            return self._of_actions(version, data, actions)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SourceError(
                f"{self._path}: entry {version} of its log cannot be read ({error})",
                remedy="If it is still being written this passes by itself; else restore the table",
            ) from error

    def _of_actions(self, version: int, data: bytes, actions: list[dict[str, Any]]) -> Entry:
        def of(kind: str) -> list[dict[str, Any]]:
            return [action[kind] for action in actions if kind in action]

        meta, info = next(iter(of("metaData")), {}), next(iter(of("commitInfo")), {})
        if meta:
            require_plain(self._path, meta.get("configuration") or {})
            self._facts = None
        added, removed = ([one for one in of(kind) if one.get("dataChange", True)] for kind in ("add", "remove"))
        if any(one.get("deletionVector") for one in (*added, *removed)):
            raise vectors(self._path)
        return Entry(
            version, (info.get("timestamp") or 0) / 1000, fingerprint(data), str(meta.get("id") or ""),
            str(info.get("operation") or ""), tuple(map(self._of, added)),
            tuple(self._of(one, rows=0) for one in removed), tuple(map(self._of, of("cdc"))),
        )  # fmt: skip

    def _of(self, action: Mapping[str, Any], rows: int | None = None) -> RowFile:
        stats, path = json.loads(action.get("stats") or "{}"), unquote(action["path"])
        typed, given = self._typed(), action.get("partitionValues")
        named = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
        values = {name: typed(name, value) for name, value in (named if given is None else given).items()}
        return self._file(path, values, stats.get("numRecords") if rows is None else rows, action.get("size") or 0)

    def _typed(self) -> Callable[[str, Any], Any]:
        facts = self.facts()
        kinds = facts.partitions if facts else {}
        return lambda name, value: typed_value(kinds.get(name, ""), value)

    def _file(self, path: str, values: Mapping[str, Any], rows: int | None, size: int) -> RowFile:
        if "://" in path or path.startswith("/"):
            raise SourceError(
                f"{self._path}: its log names {path}, which lies outside of it (a shallow clone)",
                remedy="Read the table that it was cloned from, or copy it whole",
            )
        plain = {name: value if isinstance(value, bool | int | float | None) else str(value) for name, value in
                 values.items()}  # fmt: skip
        return RowFile(path, plain, self._rows(path) if rows is None else int(rows), int(size))

    def _rows(self, path: str) -> int:
        """Rows by the file's footer; where that is gone or damaged one at least, whose reader says so."""
        try:
            with self._files.open_input_file(f"{self._root}/{path}") as file:
                return int(pq.read_metadata(file).num_rows)
        except (FileNotFoundError, pa.ArrowException):
            return 1
