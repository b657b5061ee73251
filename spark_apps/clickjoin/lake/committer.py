"""Commits of delta-rs: files that lie beside a table's own, or none, under a transaction of the product's own.

Each is the very next version after the one that a handle shows, or none at all; the loser reads the table again.
Each carries a nonce, by which a writer whose answer was lost finds out whether the commit that is there is its own.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from clickjoin.kernel.filesystem import filesystem, flush_commit, flush_data, flush_recent, local_folder
from clickjoin.lake.location import absent, location
from clickjoin.lake.s3_table import S3Table, carrying
from clickjoin.lake.side_by_side import together
from clickjoin.model import failpoint
from clickjoin.model.errors import CommitStateUnknown, FilesGone, LakeError
from clickjoin.model.places import is_on_s3
from clickjoin.model.txn import Txn

if TYPE_CHECKING:
    from clickjoin.kernel.data_file import DataFile

_NAMED = 3
T = TypeVar("T")


class Unwritable(LakeError):
    """Someone has given a table a feature that only Spark can write."""


class Committer(Protocol):
    """The port of commits: two programs commit to one log, and exclude each other by the store's own put-if-absent."""

    def commit_next(
        self, table: DeltaTable, files: Sequence[DataFile], txn: Txn | None, removed: Sequence[DataFile] = ()
    ) -> None:
        """Commit files as the very next version after the one that a handle shows, and return once that is on disk.

        Each file is looked for first: a commit of what is not there could never be read, nor taken back by a retry.
        `removed`: files of that version that they replace, which the caller has looked for in it.
        Errors: CommitFailedError where another commit came first, CommitStateUnknown, Unwritable, FilesGone.
        """
        ...

    def ensure_durable(self, table: DeltaTable) -> None:
        """Return once the newest commits that a handle shows are on disk, no matter who made them.

        Errors: CommitStateUnknown.
        """
        ...

    def ensure_rewritten(self, table: DeltaTable) -> None:
        """Return once the commit of a delete is on disk, which delta-rs itself has made, and the files that it added.

        What it kept is in the older files as well until those are vacuumed. Errors: CommitStateUnknown.
        """
        ...


def committer(uri: str) -> Committer:
    """The committer of a table's store. Errors: LakeError for a store that none is known for."""
    if local_folder(uri) is not None:
        return LocalCommitter()
    if not is_on_s3(uri):
        raise LakeError(
            f"{uri}: only tables on a local disk or on S3 can be committed to",
            remedy="Name a local folder, or s3://BUCKET/PREFIX, as `lake`",
        )
    return S3Committer()


def rewritten(table: DeltaTable, change: Callable[[DeltaTable], T]) -> T:
    """What delta-rs commits by itself, a deletion or a rewriting: returns once that is on disk.

    Errors: CommitFailedError where another commit came first, CommitStateUnknown.
    """
    with failpoint.around_commit(table.table_uri):
        done = change(table)
    committer(table.table_uri).ensure_rewritten(table)
    return done


class LocalCommitter:
    """Commits of delta-rs on a local disk, where it links an entry into place and flushes nothing."""

    def commit_next(
        self, table: DeltaTable, files: Sequence[DataFile], txn: Txn | None, removed: Sequence[DataFile] = ()
    ) -> None:
        """See Committer."""
        _flush(table.table_uri, _commit(table, files, txn, removed))

    def ensure_durable(self, table: DeltaTable) -> None:
        """See Committer."""
        _flush(table.table_uri, int(table.version()), flush_recent)

    def ensure_rewritten(self, table: DeltaTable) -> None:
        """See Committer."""
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


class S3Committer:
    """Commits to S3, where a conditional PUT creates an entry whole and durable, or is refused (see s3_table)."""

    def commit_next(
        self, table: DeltaTable, files: Sequence[DataFile], txn: Txn | None, removed: Sequence[DataFile] = ()
    ) -> None:
        """See Committer. What has to hold before is asked for side by side."""
        if not isinstance(table, S3Table):
            raise TypeError(f"{table.table_uri}: a handle that is not by DeltaReader.open")
        known = table.just_written()
        looked_for = [file for file in files if file.path not in known]
        together(*table.before_commit(), partial(_require_there, table.uri, looked_for))
        with _writable(table.uri):
            table.commit_next(_actions(files, removed), txn)

    def ensure_durable(self, table: DeltaTable) -> None:
        """See Committer: what can be read there is durable."""

    def ensure_rewritten(self, table: DeltaTable) -> None:
        """See Committer: what can be read there is durable."""


def _commit(table: DeltaTable, files: Sequence[DataFile], txn: Txn | None, removed: Sequence[DataFile]) -> int:
    """Commit the very next version, and return its number. Errors: as of Committer.commit_next."""
    _require_there(table.table_uri, files)
    nonce, version = uuid.uuid4().hex, int(table.version()) + 1
    try:
        with _writable(table.table_uri):
            table.create_write_transaction(
                _actions(files, removed), "append", table.schema(), commit_properties=carrying(txn, nonce)
            )
    except (DeltaError, OSError) as error:
        if not _landed(table.table_uri, version, nonce, error):
            raise
    return version


def _actions(files: Sequence[DataFile], removed: Sequence[DataFile]) -> list[Any]:
    now = int(time.time() * 1000)
    gone = [RemoveAction(f.path, True, now, f.size, dict(f.values)) for f in removed]
    return gone + [AddAction(f.path, f.size, f.values, now, True, f.stats) for f in files]


@contextmanager
def _writable(uri: str) -> Iterator[None]:
    try:
        yield
    except (DeltaError, OSError) as error:
        if "Unsupported table features" in str(error):
            raise Unwritable(f"{uri}: {error}", remedy="Take the feature away from the table again") from error
        raise


def _require_there(uri: str, files: Sequence[DataFile]) -> None:
    if files and (gone := absent(location(uri), {file.path: file.size for file in files})):
        raise FilesGone(
            f"{uri}: {len(gone)} of {len(files)} files that were to be added are gone: "
            f"{', '.join(gone[:_NAMED])}{' …' if len(gone) > _NAMED else ''}; nothing was added",
            remedy="The batch is run again and writes others; if it happens again, look who removes files there "
            "(a VACUUM by hand? a host whose clock is ahead?)",
        )


def _landed(uri: str, version: int, nonce: str, error: Exception) -> bool:
    """Whether a commit is in the log although its writer got an error."""
    system, root = filesystem(uri)
    try:
        with system.open_input_stream(f"{root}/_delta_log/{version:020d}.json") as file:
            return nonce.encode() in file.read()
    except FileNotFoundError:
        if isinstance(error, CommitFailedError) and "already exists" in str(error):
            raise _unknown(uri, version, error) from error
        return False
    except OSError as unread:
        raise _unknown(uri, version, unread) from error


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
