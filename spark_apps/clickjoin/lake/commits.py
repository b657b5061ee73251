"""Commits of delta-rs: files that lie beside a table's own, or none, under a transaction of the product's own.

Each is the very next version after the one that a handle shows, or none at all; whoever loses looks at the table again.
Each carries a nonce, by which a writer whose answer was lost finds out whether the commit that is there is its own.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from clickjoin.errors import CommitStateUnknown, FilesGone, LakeError
from clickjoin.lake.durable import flush_commit, flush_data, flush_recent, local_folder
from clickjoin.lake.storage import absent
from clickjoin.lake.txn import Txn

if TYPE_CHECKING:
    from clickjoin.lake.written import Written

_NAMED = 3
_NONCE = "clickjoinNonce"  # a key of commitInfo


class Unwritable(LakeError):
    """Somebody has given a table a feature that only Spark can write."""


def add(table: DeltaTable, files: Sequence[Written], txn: Txn | None) -> None:
    """Commit files as the very next version after the one that a handle shows, and return once that is on disk.

    Each file is looked for first: a commit of what is not there could never be read, nor taken back by a retry.
    Errors: CommitFailedError where another commit came first, CommitStateUnknown, Unwritable, FilesGone.
    """
    _require_there(table.table_uri, files)
    now = int(time.time() * 1000)
    adds: list[Any] = [AddAction(f.path, f.size, f.values, now, True, f.stats) for f in files]
    nonce, version = uuid.uuid4().hex, int(table.version()) + 1
    try:
        table.create_write_transaction(adds, "append", table.schema(), commit_properties=_carrying(txn, nonce))
    except (DeltaError, OSError) as error:
        if "Unsupported table features" in str(error):
            remedy = "Take the feature away from the table again"
            raise Unwritable(f"{table.table_uri}: {error}", remedy=remedy) from error
        if not _landed(table.table_uri, version, nonce, error):
            raise
    _flush(table.table_uri, version)


def _require_there(uri: str, files: Sequence[Written]) -> None:
    if files and (gone := absent(uri, {file.path: file.size for file in files})):
        raise FilesGone(
            f"{uri}: {len(gone)} of {len(files)} files that were to be added are gone: "
            f"{', '.join(gone[:_NAMED])}{' …' if len(gone) > _NAMED else ''}; nothing was added",
            remedy="The batch is run again and writes others; if it happens again, look who removes files there "
            "(a VACUUM by hand? a host whose clock is ahead?)",
        )


def _carrying(txn: Txn | None, nonce: str) -> CommitProperties:
    transactions = [Transaction(txn.app_id, txn.version)] if txn else None
    return CommitProperties(custom_metadata={_NONCE: nonce}, max_commit_retries=0, app_transactions=transactions)


def _landed(uri: str, version: int, nonce: str, error: Exception) -> bool:
    """Whether the commit that was answered by an error is in the log all the same."""
    system, root = pafs.FileSystem.from_uri(uri)
    try:
        with system.open_input_stream(f"{root}/_delta_log/{version:020d}.json") as file:
            return nonce.encode() in file.read()
    except FileNotFoundError:
        if isinstance(error, CommitFailedError) and "already exists" in str(error):
            raise _unknown(uri, version, error) from error
        return False
    except OSError as unread:
        raise _unknown(uri, version, unread) from error


def ensure_durable(table: DeltaTable) -> None:
    """Return once the newest commits that a handle shows are on disk, whoever made them. Errors: CommitStateUnknown."""
    _flush(table.table_uri, int(table.version()), flush_recent)


def ensure_rewritten(table: DeltaTable) -> None:
    """Return once the commit of a delete is on disk, which delta-rs itself has made, and the files that it added.

    What it kept lies in the older files as well until those are vacuumed. Errors: CommitStateUnknown.
    """
    version, folder = int(table.version()), local_folder(table.table_uri)
    if folder is None:
        return
    try:
        with (folder / "_delta_log" / f"{version:020d}.json").open(encoding="utf-8") as lines:
            added = [action["add"]["path"] for action in map(json.loads, lines) if "add" in action]
        for path in added:
            flush_data(folder, unquote(path))
    except FileNotFoundError:
        return  # nothing was deleted, and the newest commit is so old that it has been cleaned up
    except OSError as error:
        raise _unknown(table.table_uri, version, error) from error
    _flush(table.table_uri, version)


def _flush(uri: str, version: int, flush: Callable[[Path, int], None] = flush_commit) -> None:
    folder = local_folder(uri)
    if folder is None:
        return
    try:
        flush(folder, version)
    except OSError as error:
        raise _unknown(uri, version, error) from error


def _unknown(uri: str, version: int, error: Exception) -> CommitStateUnknown:
    detail = f"{os.strerror(error.errno)}" if isinstance(error, OSError) and error.errno else str(error)
    return CommitStateUnknown(
        f"{uri}: version {version} may or may not be on disk ({detail})",
        remedy="Check the disk. Run it again: what landed is found by its transaction, and nothing is done twice",
    )
