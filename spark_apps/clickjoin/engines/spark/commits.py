"""Commits of Delta's own writer, each recognised by a nonce in its entry of the log.

Delta picks the version itself, rebases an append past whatever was committed since, and skips a transaction that is
there without saying so. So a commit is believed where an entry of the log carries the nonce of this very call.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from clickjoin.engines.commit_errors import commit_error, given_up
from clickjoin.kernel.filesystem import filesystem
from clickjoin.lake.committer import committer
from clickjoin.lake.log_entries import read_entry
from clickjoin.lake.snapshot_files import LOG
from clickjoin.model import failpoint
from clickjoin.model.errors import CommitStateUnknown
from clickjoin.spark.views import named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.model.txn import Txn
    from clickjoin.spark.lazy import LazySession

_TXN_APP = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"
_NONCE = "spark.databricks.delta.commitInfo.userMetadata"
_RERUNS = 30
_known: WeakKeyDictionary[Any, _Turns] = WeakKeyDictionary()
_making = Lock()


class Commits:
    """Commits to the tables under one folder. `reruns`: how often one was run again as another came first."""

    def __init__(self, session: LazySession, tables: DeltaReader, sleep: Callable[[float], None] = time.sleep) -> None:
        self._session, self._tables, self.sleep = session, tables, sleep
        self.reruns = 0

    @property
    def spark(self) -> SparkSession:
        """The session. Errors: those of its start."""
        return self._session()

    def create(self, name: str, sql: str) -> bool:
        """Run a CREATE TABLE; whether version 0 is this call's: one of the same columns that came first is no error."""
        nonce = uuid.uuid4().hex
        with failpoint.around_commit(name), alone(self.spark), self._settings(nonce, None):
            self.spark.sql(sql)
        system, root = filesystem(self._tables.path(name))
        return _said(system, f"{root}/{LOG}", 0)[0] == nonce

    def append(self, name: str, rows: DataFrame, txn: Txn | None = None) -> bool:
        """Append rows; whether they are in the table by this call. Nothing happens where it holds the txn."""

        def write(nonce: str) -> None:
            writer = rows.write.format("delta").mode("append").option("userMetadata", nonce)
            if txn:
                writer = writer.option("txnAppId", txn.app_id).option("txnVersion", txn.version)
            writer.save(self._tables.path(name))

        return self._commit(name, write, txn, _beside) is not None

    def run(self, name: str, sql: str, txn: Txn | None = None) -> int | None:
        """Run a MERGE, DELETE, UPDATE, ALTER or OPTIMIZE of a table; `{table}` in it stands for the table.

        Returns the rows of the files that it has added, by its entry of the log: not by Spark's metrics, which a task
        that runs twice inflates. None where it has committed nothing, as where the table holds the txn.
        """
        text = sql.replace("{table}", f"delta.`{self._tables.path(name)}`")

        def write(nonce: str) -> None:
            with self._settings(nonce, txn):
                self.spark.sql(text).collect()

        return self._commit(name, write, txn, alone)

    def insert(self, name: str, rows: DataFrame, on: str, txn: Txn | None = None) -> int | None:
        """Insert those rows (`s`) for which no row of a table (`t`) fulfils `on`, by one MERGE; returns as `run`.

        `rows`: kept by Spark, or of this process, so that they are the same however often Delta reads its source.
        `on` is what a commit of others is a conflict by: literal terms on the partitions of `t` keep MERGEs apart.
        """
        names, values = (", ".join(f"{dot}`{column}`" for column in rows.columns) for dot in ("", "s."))
        with named(rows) as view:
            merge = f"MERGE INTO {{table}} t USING {view} s ON {on} "
            return self.run(name, f"{merge}WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})", txn)

    @contextmanager
    def _settings(self, nonce: str, txn: Txn | None) -> Iterator[None]:
        """What SQL statements commit with. Nothing else runs in the session meanwhile (see _commit).

        An unset that fails closes the session: what came next would be committed under this transaction.
        """
        wanted = {_NONCE: nonce} | ({_TXN_APP: txn.app_id, _TXN_VERSION: str(txn.version)} if txn else {})
        spark = self.spark
        try:
            for key, value in wanted.items():
                spark.conf.set(key, value)
            yield
        finally:
            try:
                for key in wanted:
                    spark.conf.unset(key)
            except Exception:
                spark.stop()
                raise

    def _commit(
        self,
        name: str,
        write: Callable[[str], None],
        txn: Txn | None,
        turn: Callable[[SparkSession], AbstractContextManager[None]],
    ) -> int | None:
        tables = self._tables
        before = tables.version(name)
        if txn and tables.latest_txn_version(name, txn.app_id) >= txn.version:
            self._flush(name)  # a copy of this batch may have been killed before it could
            return None
        nonces: list[str] = []
        failed: Exception | None = None
        for attempt in range(_RERUNS):
            tables.require_same()
            tables.require_newest(name)  # and that this program keeps to the table's features
            nonces.append(uuid.uuid4().hex)
            try:
                with failpoint.around_commit(tables.path(name)), turn(self.spark):
                    tables.moved(name)
                    write(nonces[-1])
                return self._done(name, before, nonces, txn)
            except Exception as error:
                failed = commit_error(error)
                if failed is None:
                    raise
                if self._added(name, before, nonces) is not None:
                    return self._done(name, before, nonces, txn)
                self.reruns += 1
                self.sleep(random.uniform(0.01, 0.05 * 2 ** min(attempt, 6)))
        raise given_up(tables.path(name), _RERUNS, failed if isinstance(failed, CommitStateUnknown) else None)

    def _done(self, name: str, before: int, nonces: Sequence[str], txn: Txn | None) -> int | None:
        self._tables.require_same()
        self._flush(name)
        if txn:
            self._tables.noted.saw(name, txn.app_id, txn.version)
        return self._added(name, before, nonces)

    def _flush(self, name: str) -> None:
        table = self._tables.open(name)
        committer(table.table_uri).ensure_durable(table)

    def _added(self, name: str, before: int, nonces: Sequence[str]) -> int | None:
        """Rows of the files that an entry of the log after a version has added, which carries one of some nonces."""
        system, root = filesystem(self._tables.path(name))
        for version in range(before + 1, self._tables.version(name) + 1):
            nonce, rows = _said(system, f"{root}/{LOG}", version)
            if nonce in nonces:
                return rows
        return None


def _said(system: Any, folder: str, version: int) -> tuple[str | None, int]:
    """The nonce of an entry, and the rows of the files that it adds; nothing of an entry that is not there any more."""
    try:
        actions = [json.loads(line) for line in read_entry(system, folder, version).splitlines()]
    except FileNotFoundError:
        return None, 0
    infos = (action["commitInfo"] for action in actions if "commitInfo" in action)
    added = (json.loads(action["add"].get("stats") or "{}") for action in actions if "add" in action)
    return next((info.get("userMetadata") for info in infos), None), sum(stats.get("numRecords", 0) for stats in added)


class _Turns:
    """Of the threads that commit by a session: those that append go side by side, one that sets a transaction alone."""

    def __init__(self) -> None:
        self._changed, self._appending, self._taken = Condition(), 0, False

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._taken and not self._appending)
            self._taken = True
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._changed.notify_all()

    @contextmanager
    def beside(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._taken)
            self._appending += 1
        try:
            yield
        finally:
            with self._changed:
                self._appending -= 1
                self._changed.notify_all()


def alone(session: SparkSession) -> AbstractContextManager[None]:
    """Be the only thread that commits by a session: a transaction in its settings is meant for one statement."""
    return _turns(session).alone()


def _beside(session: SparkSession) -> AbstractContextManager[None]:
    """Commit by a session while others may too, none of them by its settings."""
    return _turns(session).beside()


def _turns(session: SparkSession) -> _Turns:
    with _making:
        return _known.setdefault(session, _Turns())
