"""A table on S3 as a handle of delta-rs that reads a copy of its log, and commits by one conditional PUT."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from clickjoin.lake.continuity import older_data
from clickjoin.lake.log_copy import LogCopy
from clickjoin.lake.log_load import LoadedLog, now
from clickjoin.lake.store_options import store_options
from clickjoin.model.errors import CommitStateUnknown

if TYPE_CHECKING:
    from deltalake.transaction import AddAction, RemoveAction

    from clickjoin.model.txn import Txn

NONCE = "clickjoinNonce"  # a key of commitInfo
_JUST_NOW = 10.0  # seconds since a file was written, in which nobody has taken it away
_INTERVAL, _EVERY = "delta.checkpointInterval", 25  # commits at most: a new process reads each
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
# What writes to a table by delta-rs itself, or reads more of it than its log: by a handle on the table on S3.
_BY_STORE = (
    "alter", "delete", "repair", "optimize", "merge", "update", "vacuum", "restore", "create_checkpoint",
    "cleanup_metadata", "compact_logs", "generate", "load_as_version", "load_cdf", "file_uris", "history", "count",
    "deletion_vectors", "scan", "to_pandas",
)  # fmt: skip
_checkpoints = ThreadPoolExecutor(1, thread_name_prefix="clickjoin-checkpoints")
_log = logging.getLogger(__name__)


class S3Table(DeltaTable):
    """The table at a URI, at the version that it was last brought to. For one thread at a time.

    `check`: what has to hold right before a commit, asked for side by side with its other requests.
    """

    def __init__(self, uri: str, check: Callable[[], None] = lambda: None, loaded: LoadedLog | None = None) -> None:
        self.uri, self.log, self._check = uri, LogCopy(uri, loaded), check
        self._is_behind, self._is_checked = False, False
        self._written: dict[str, float] = {}
        super().__init__(self.log.folder)

    @property
    def table_uri(self) -> str:
        """Where the table lies."""
        return self.uri

    def update_incremental(self) -> None:
        """Bring it to the table's newest version."""
        self._is_behind = True  # until all of it has been read
        if self.log.follow():
            super().__init__(self.log.folder)
        self._is_behind = False
        self.bring_forward()

    def bring_forward(self) -> None:
        """Bring it to the newest version that this process has seen or made, without a request."""
        self._is_checked = False
        if self.version() != self.log.newest:
            super().update_incremental()

    @property
    def may_be_newest(self) -> bool:
        """Whether a commit right after the version that is known is worth trying: nothing has shown it to be old."""
        return self.log.is_fresh and not self._is_behind

    def check(self) -> None:
        """Have the check made now, for the next commit alone."""
        self._check()
        self._is_checked = True

    def wrote(self, paths: Iterable[str]) -> None:
        """Note that files were written just now: they need not be looked for."""
        self._written = dict.fromkeys(paths, now())

    def just_written(self) -> set[str]:
        """Files that cannot have gone: they were written a moment ago."""
        return {path for path, at in self._written.items() if now() - at < _JUST_NOW}

    def before_commit(self) -> list[Callable[[], None]]:
        """What is still to be checked before the next commit."""
        checked, self._is_checked = self._is_checked, False
        return [self.require_newest] if checked else [self._check, self.require_newest]

    def require_newest(self) -> None:
        """Check that the newest version on S3 that is known is what was read there. Errors: LakeReplaced, OSError.

        A store that comes back older has no version after it, or others: nothing else would tell.
        """
        version = self.log.newest
        there = self.log.entry(version)
        if there != self.log.place(version).read_bytes() and not (there is None and self.log.is_cleaned(version)):
            raise older_data(self.uri, version)

    def commit_next(self, actions: Sequence[AddAction | RemoveAction], txn: Txn | None) -> None:
        """Commit files as the very next version. Errors: as of Committer.commit_next.

        delta-rs checks the table's protocol and writes the entry, to the copy of the log; that is what is sent.
        """
        nonce, version = uuid.uuid4().hex, int(self.version()) + 1
        if version != self.log.newest + 1 or not self.may_be_newest:
            self._is_behind = True
            raise CommitFailedError(f"{self.uri}: version {version} may be another's")
        self._is_behind, landed = True, False
        try:
            self.create_write_transaction(
                list(actions), "append", self.schema(), commit_properties=carrying(txn, nonce),
                post_commithook_properties=_NO_HOOKS,
            )  # fmt: skip
            landed = self._send(version, self.log.place(version).read_bytes(), nonce)
        finally:
            if not landed:
                self.log.place(version).unlink(missing_ok=True)
        if not landed:
            raise CommitFailedError(f"{self.uri}: version {version} already exists")
        self.log.newest, self._is_behind = version, False
        self._written.clear()
        self._checkpoint(version)

    def _send(self, version: int, data: bytes, nonce: str) -> bool:
        """Whether the entry is in the log: created now, or by a request whose answer was lost."""
        try:
            if self.log.create(version, data):
                return True
        except OSError as error:
            return self._is_own(version, nonce, error)
        return self._is_own(version, nonce, None)

    def _is_own(self, version: int, nonce: str, error: OSError | None) -> bool:
        try:
            there = self.log.entry(version)
        except OSError as unread:
            raise self._unknown(version, unread) from unread
        if there is not None:
            return nonce.encode() in there
        if error is None:
            raise self._unknown(version, OSError("it was refused, and is not there"))
        raise error

    def _unknown(self, version: int, error: OSError) -> CommitStateUnknown:
        return CommitStateUnknown(
            f"{self.uri}: version {version} may or may not be there ({error})",
            remedy="Run it again: what landed is found by its transaction, and nothing is done twice",
        )

    def _checkpoint(self, version: int) -> None:
        """Now and then a checkpoint, by delta-rs, beside whatever goes on: a log can be read without it."""
        if (version + 1) % min(int((self.metadata().configuration or {}).get(_INTERVAL, _EVERY)), _EVERY) == 0:
            _checkpoints.submit(_write_checkpoint, self.uri, self.log, self.log.folder, version)


def _write_checkpoint(uri: str, log: LogCopy, folder: Path, version: int) -> None:
    """Made of the copy in a folder, which the log may have left for another meanwhile: a request for what is sent."""
    try:
        DeltaTable(folder, version=version).create_checkpoint()
        log.send_checkpoint(folder, version)
    except (DeltaError, OSError) as error:
        _log.warning("%s: no checkpoint of version %s (%s); the next one, or gc, makes up for it", uri, version, error)


def carrying(txn: Txn | None, nonce: str) -> CommitProperties:
    """What a commit carries beside its files."""
    transactions = [Transaction(txn.app_id, txn.version)] if txn else None
    return CommitProperties(custom_metadata={NONCE: nonce}, max_commit_retries=0, app_transactions=transactions)


def _by_store(name: str) -> Any:
    def found(table: S3Table) -> Any:
        options = store_options(table.uri)
        return getattr(DeltaTable(table.uri, version=table.version(), storage_options=options), name)

    return property(found, doc=f"`{name}` of the table on S3, from the version that this handle shows.")


for _name in _BY_STORE:
    setattr(S3Table, _name, _by_store(_name))
