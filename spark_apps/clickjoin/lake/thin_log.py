"""What is new in a table's log on a local disk, copied entry by entry beside a checkpoint that names no files.

delta-rs reads the copy as it reads a log, so settings and transactions are its word; the files from before are not its.
An entry is looked for by its name: listing a log takes as long as it has entries, and there are days of them.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from clickjoin.kernel.filesystem import local_folder
from clickjoin.lake.log_copy import new_folder
from clickjoin.lake.log_end import entry_of, is_at_end
from clickjoin.lake.log_entries import POINTER, read_log

LOG = "_delta_log"
_MOST_WRITER = 6  # of later protocols a table's features are named, and may have actions that are none of those below
_FILES, _OTHERS = frozenset({"add", "remove"}), frozenset({"commitInfo", "txn", "cdc"})
_TEXTS = pa.map_(pa.string(), pa.string())
_CHECKPOINT = pa.schema([
    ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
    ("add", pa.struct([
        ("path", pa.string()), ("partitionValues", _TEXTS), ("size", pa.int64()), ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()), ("stats", pa.string()),
    ])),
    ("metaData", pa.struct([
        ("id", pa.string()), ("name", pa.string()), ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])), ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())), ("createdTime", pa.int64()), ("configuration", _TEXTS),
    ])),
    ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
])  # fmt: skip


class ThinLog:
    """The log of the table that a handle shows, from that version on. Errors: OSError; ValueError where it cannot be.

    It cannot where entries are damaged or gone, or may hold what this does not know.
    """

    MOST_ENTRIES = 256  # taken in, before another one is to be begun

    def __init__(self, table: DeltaTable) -> None:
        self._log = folder_of(table) / LOG
        self._first = self.newest = int(table.version())
        actions = [{"protocol": _protocol(table)}, {"metaData": _metadata(table)}, *self._txns(table.table_uri)]
        self.folder = new_folder(self)
        (self.folder / LOG).mkdir()
        self._checkpoint = self.folder / LOG / f"{self.newest:020}.checkpoint.parquet"
        pq.write_table(pa.Table.from_pylist(actions, _CHECKPOINT), self._checkpoint)
        self.place(self.newest).write_text('{"commitInfo":{"timestamp":0}}\n', encoding="utf-8")  # it has to be there
        pointer = {"version": self.newest, "size": len(actions)}
        (self.folder / LOG / POINTER).write_text(json.dumps(pointer), encoding="utf-8")

    def _txns(self, uri: str) -> Iterator[dict[str, Any]]:
        found = read_log(uri, self.newest)
        if found.torn or found.version != self.newest:
            raise ValueError(f"{uri}: its log cannot be read at version {self.newest}")
        yield from ({"txn": {"appId": app, "version": version}} for app, version in found.txns.items())

    @property
    def is_long(self) -> bool:
        """Whether so many entries have been taken in that another one is worth beginning."""
        return self.newest - self._first > self.MOST_ENTRIES

    def follow(self) -> list[str]:
        """Take in the entries that have come; returns paths of the files that they add or remove, as they write them.

        Errors: ValueError where they cannot be followed from here: they are gone, or say what this does not know.
        """
        paths: list[str] = []
        if not self._checkpoint.exists():  # where old files are swept out of folders like this
            raise ValueError(f"{self.folder}: has been emptied")
        while (data := self._next()) is not None:
            paths += _touched(data)
            self.place(self.newest + 1).write_bytes(data)
            self.newest += 1
        return paths

    def _next(self) -> bytes | None:
        data = self._entry(self.newest + 1)
        if data is None and not is_at_end(self._log, self.newest):
            # Where its writer has made a checkpoint since, it is there now; else it was cleaned up.
            data = self._entry(self.newest + 1)
            if data is None:
                raise ValueError(f"{self._log}: version {self.newest + 1} is there no more")
        return data

    def _entry(self, version: int) -> bytes | None:
        try:
            return (self._log / self.place(version).name).read_bytes()
        except FileNotFoundError:
            return None

    def place(self, version: int) -> Path:
        """Where an entry's copy is."""
        return entry_of(self.folder / LOG, version)

    def publish(self, version: int) -> None:
        """Create an entry in the table's log as it is in the copy.

        Errors: CommitFailedError where there is one, or was: anyone who slept for days finds its place empty again.
        """
        entry = self._log / self.place(version).name
        beside = entry.with_name(f".{entry.name}.{uuid.uuid4().hex}")
        try:
            beside.write_bytes(self.place(version).read_bytes())
            if version != self.newest + 1 or not is_at_end(self._log, self.newest):
                raise CommitFailedError(f"{entry}: version {version} may have been another's")
            os.link(beside, entry)  # whole, and never over another's
        except FileExistsError as error:
            raise CommitFailedError(f"{entry}: version {version} already exists") from error
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


def folder_of(table: DeltaTable) -> Path:
    """Where a table lies. Errors: ValueError where that is no local disk."""
    folder = local_folder(table.table_uri)
    if folder is None:
        raise ValueError(f"{table.table_uri}: is on no disk")
    return folder


def _touched(data: bytes) -> list[str]:
    actions = [json.loads(line) for line in data.splitlines() if line.strip()]
    for action in actions:
        unknown = action.keys() - _FILES - _OTHERS
        if unknown or any((action.get(kind) or {}).get("deletionVector") for kind in _FILES):
            raise ValueError(f"an entry holds {', '.join(unknown) or 'deletion vectors'}")
    return [action[kind]["path"] for action in actions for kind in _FILES & action.keys()]


def _protocol(table: DeltaTable) -> dict[str, int]:
    known = table.protocol()
    if known.min_reader_version > 1 or known.min_writer_version > _MOST_WRITER:
        raise ValueError(f"{table.table_uri}: has a protocol of named features")
    return {"minReaderVersion": known.min_reader_version, "minWriterVersion": known.min_writer_version}


def _metadata(table: DeltaTable) -> dict[str, Any]:
    known = table.metadata()
    return {
        "id": str(known.id), "name": known.name, "description": known.description,
        "format": {"provider": "parquet", "options": []}, "schemaString": table.schema().to_json(),
        "partitionColumns": known.partition_columns, "createdTime": known.created_time,
        "configuration": list((known.configuration or {}).items()),
    }  # fmt: skip
