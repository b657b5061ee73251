"""The only way to write the large tables: idempotent appends and insert-only merges, run again on conflict."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyspark.sql import functions as F

from clickjoin.kernel.data_file import DataFile, Target, write_batches
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.rewrite_task import Events, change
from clickjoin.lake.committer import committer
from clickjoin.lake.delta_tables import DeltaTables
from clickjoin.lake.maintenance import SORTED, file_sizes, place_column
from clickjoin.lake.rewrite_rows import near, rewrite_rows
from clickjoin.lake.row_groups import for_look_ups
from clickjoin.lake.spark_reader import SparkReader
from clickjoin.model import failpoint
from clickjoin.model.errors import CommitConflict, CommitRefused, CommitStateUnknown, LakeError, TableMissing
from clickjoin.model.extent import Extent
from clickjoin.model.ids import EVENT_KEY
from clickjoin.model.places import is_on_s3
from clickjoin.model.txn import Txn
from clickjoin.schemas import BY_NAME, Table
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.spark import object_store
from clickjoin.spark.commit_errors import commit_error
from clickjoin.spark.session import require_log_stores

T = TypeVar("T")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from clickjoin.spark.lazy import Session


_SORTED = "spark.databricks.io.skipping.mdc.sortWithinFiles"
_MIN_FILE_SIZE = "spark.databricks.delta.optimize.minFileSize"
_MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
_RERUNS = 30


class SparkTables(SparkReader):
    """The tables of one pipeline. `conflict_reruns` counts commits run again because another writer came first."""

    def __init__(self, spark: Session, root: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(spark, DeltaTables(root))
        self.delta: DeltaTables
        self._reaches, self._reaching = not is_on_s3(root), RLock()
        self.conflict_reruns = 0
        self.sleep = sleep
        if self.started:
            _ = self.spark  # what it cannot do is said now

    @property
    def spark(self) -> SparkSession:
        """The session; it is started by the first who asks. Errors: also where it cannot commit to S3 as it must."""
        session = super().spark
        with self._reaching:
            if not self._reaches:
                require_log_stores(session, object_store.REQUIRED)
                object_store.reach(session, self.delta.root)
                self._reaches = True
        return session

    def append(self, name: str, rows: DataFrame | pa.Table, txn: Txn) -> bool:
        """Append rows in one commit, once a txn: where the table holds it already, nothing is written.

        Whether it is these rows that the table holds under the txn. Rows of a DataFrame are written by tasks.
        """
        if isinstance(rows, pa.Table):
            return self.delta.append_table(name, rows, txn)
        known = self.delta.schema(name)
        columns = [column for column in known.names if column in rows.columns]
        target = self.target(self.delta.table(name), pa.schema([known.field(column) for column in columns]))
        parts = rows.select(*(f"`{column}`" for column in columns)).mapInArrow(
            checked(write_batches(target)), "done STRING"
        )
        files = [DataFile(*file) for row in parts.collect() for file in json.loads(row["done"])]
        return self.add(name, files, txn)

    def add(self, name: str, files: Sequence[DataFile], txn: Txn) -> bool:
        """Add files that tasks have written to a table, in one commit, once a txn; returns as `append` does."""
        return self.delta.add(name, files, txn)

    def target(self, table: Table, schema: pa.Schema | None = None) -> Target:
        """A table for tasks to write files of: all of its columns, or those of a schema."""
        return Target(self.delta.path(table.name), schema or arrow_schema(table), table.partitions, table.statistics)

    def create_filled(self, table: Table, rows: DataFrame, name: str, order: str = "event_time") -> None:
        """Create a table under some name, then append its rows in one commit, sorted by a column within partitions.

        Not by Spark alone, which takes no property that is not Delta's. Errors: LakeError for a table that is there.
        """
        if not self.delta.create(replace(table, name=name)):
            raise LakeError(f"{self.delta.path(name)}: is there already", remedy="Put it aside, and start again")
        spread = rows.repartition(*(F.col(column) for column in table.partitions))
        writer = spread.sortWithinPartitions(*table.partitions, order).write.format("delta").mode("append")
        with for_look_ups(self.spark, table.name), failpoint.around_commit(name):
            writer.save(self.delta.path(name))

    def commit_txn_only(self, name: str, txn: Txn) -> bool:
        """Commit a txn without rows (see DeltaTables.commit_txn_only)."""
        return self.delta.commit_txn_only(name, txn)

    def delete_matched(
        self,
        name: str,
        events: DataFrame,
        extent: Extent | None = None,
        shards: Iterable[int] | None = None,
        *,
        same: tuple[str, ...] = ("token",),
        up_to: tuple[str, ...] = (),
    ) -> int:
        """Remove the rows of a table that some events name by event_id, event_time and the columns `same`; how many.

        `extent`, `shards`: where the events lie. `up_to`: columns of rows that may not be greater than the event's.
        """
        names, known = (*EVENT_KEY, *same, *up_to), self.delta.schema(name)
        keys = events.select(*names).toArrow().cast(pa.schema([known.field(column) for column in names]))
        return rewrite_rows(self, name, near(keys, extent, shards), change(Events(keys, same, up_to)))

    def rewrite(self, name: str, place: str | None = None, order: str = "event_time") -> int | None:
        """Rewrite the small files of a table, of a bucket or of a date, into few; in the registry all, in their order.

        Returns the number of files that went, or None where another writer was busy in them: they are left as they are.
        By Spark, never by delta-rs: two rewritings of the same files by that one both commit, and every row is double.
        """
        where = f" WHERE {place_column(self.delta.table(name))} = '{place}'" if place else ""
        z_order = f" ZORDER BY ({order})" if name == SORTED else ""
        self.spark.conf.set(_SORTED, "true")
        for setting, size in zip((_MIN_FILE_SIZE, _MAX_FILE_SIZE), file_sizes(name), strict=True):
            self.spark.conf.set(setting, str(size))
        sql = f"OPTIMIZE delta.`{self.delta.path(name)}`{where}{z_order}"
        try:
            with for_look_ups(self.spark, name), failpoint.around_commit(name):
                metrics = self.spark.sql(sql).collect()[0]["metrics"]
        except Exception as error:
            if not isinstance(commit_error(error), CommitRefused):
                raise
            return None
        return int(metrics["numFilesRemoved"])

    def rerun(self, name: str, commit: Callable[[], T], *, by_spark: bool = True) -> T:
        """Commit to a table, again where another writer came first or the answer was lost: a rerun finds what landed.

        `by_spark`: it opens the table by itself (see docs/backup.md), so that nobody else looks whether it is still the
        same; on S3 a commit of this process's own does. Errors: CommitConflict after many refusals, CommitStateUnknown
        after as many lost answers, LakeReplaced.
        """
        unknown: Exception | None = None
        require_same = self.delta.require_same if by_spark or not is_on_s3(self.delta.root) else lambda: None
        for attempt in range(_RERUNS):
            require_same()
            if by_spark:
                self.delta.open(name)  # whose features are checked: Spark keeps to some that nothing else here does
            try:
                with failpoint.around_commit(name) if by_spark else nullcontext():
                    done = commit()
                require_same()
                if unknown:
                    table = self.delta.open(name)
                    committer(table.table_uri).ensure_durable(table)
                return done
            except Exception as error:
                failed = commit_error(error)
                if failed is None:
                    raise
                unknown = error if isinstance(failed, CommitStateUnknown) else unknown
                self.conflict_reruns += 1
                self.sleep(random.uniform(0.01, 0.05 * 2 ** min(attempt, 6)))
        if unknown:
            raise CommitStateUnknown(
                f"{self.delta.path(name)}: no answer to {_RERUNS} commits ({unknown})"[:500], remedy="Check the disk"
            ) from unknown
        raise CommitConflict(
            f"{self.delta.path(name)}: refused {_RERUNS} times in a row",
            remedy="Too many writers in one bucket: use more shards, or fewer replicas",
        )

    def require(self) -> None:
        """Check that every table is there. Errors: LakeError, also for a registry lost beside existing outputs."""
        if not self.delta.exists("registry") and self.delta.exists("joined"):
            raise LakeError(
                f"{self.delta.path('registry')}: the registry is missing while outputs exist",
                remedy="Never start an empty one: restore it, or rebuild it from the outputs",
            )
        for name in BY_NAME:
            if not self.delta.exists(name):
                raise TableMissing(f"{self.delta.path(name)}: no such table", remedy="Run `clickjoin init`")
