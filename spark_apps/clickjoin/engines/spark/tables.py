"""Tables by Spark's Delta writer alone: settings and schemas by SQL, rows of this process by DataFrame appends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.engines.commit_errors import already_there
from clickjoin.engines.spark.commits import Commits
from clickjoin.engines.tables_port import Settings, Tables, UnderWay
from clickjoin.lake.committer import committer
from clickjoin.lake.maintenance import Size, sizes_of
from clickjoin.lake.snapshot_files import LOG
from clickjoin.lake.table_settings import settings
from clickjoin.lake.tree import tree
from clickjoin.model.errors import LakeError
from clickjoin.model.extent import text, timestamp
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.schemas.format import ENGINE, FORMAT, KEY
from clickjoin.spark.lazy import lazy
from clickjoin.spark.rows import frame

if TYPE_CHECKING:
    from clickjoin.model.txn import Txn
    from clickjoin.schemas import Table
    from clickjoin.spark.lazy import Session


_LOOKS, _PAUSE = 12, 1.0  # at a table that another process seems to make; seconds between


class SparkTables(Tables):
    """See Tables."""

    def __init__(
        self,
        spark: Session,
        root: str,
        own: Mapping[str, Table] | None = None,
        within: str | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(root, own, within)
        self.session = lazy(spark)
        self.commits = Commits(self.session, self, sleep)

    def copy(self) -> SparkTables:
        """See Tables."""
        return SparkTables(self.session, self._root, self._own, self._within, sleep=self.commits.sleep)

    def create(self, table: Table) -> bool:
        """See Tables.

        Spark's CREATE TABLE wants an empty folder. One that holds a log without a version is of another process that
        makes the table just now; or of one that was killed meanwhile, whose files then go. Errors: LakeError.
        """
        for look in range(_LOOKS):
            if self.exists(table.name):
                return False
            try:
                return self.commits.create(table.name, self._create_sql(table))
            except Exception as error:
                self.forget(table.name)
                if not already_there(error):
                    raise
                if look == _LOOKS - 2:
                    self._clear(table.name)
                self.commits.sleep(_PAUSE)
        raise LakeError(
            f"{self.path(table.name)}: holds files, and no table",
            remedy="Move them away: Spark makes a table in a new folder",
        )

    def _clear(self, name: str) -> None:
        """Remove the log, without a version, of a process that was killed before it had made a table."""
        place = tree(self.path(name))
        if not self.exists(name) and all(path.startswith(f"{LOG}/") for path in place.files()):
            place.discard()

    def _create_sql(self, table: Table) -> str:
        columns = ", ".join(f"`{c.name}` {c.type} COMMENT {text(c.meaning)}" for c in table.columns)
        parts = f" PARTITIONED BY ({', '.join(f'`{name}`' for name in table.partitions)})" if table.partitions else ""
        properties = _properties(settings(table) | {KEY: str(FORMAT), ENGINE: "spark"})
        sql = f"CREATE TABLE delta.`{self.path(table.name)}` ({columns}) USING delta{parts} "
        return f"{sql}COMMENT {text(table.purpose)} TBLPROPERTIES ({properties})"

    def _change_settings(self, name: str, change: Settings, last: bool) -> bool:
        """See Tables. `Commits` runs it again by itself."""
        said = {column: f" COMMENT {text(comment)}" for column, comment in change.comments.items()}
        new = ", ".join(f"`{column}` {kind}{said.get(column, '')}" for column, kind in change.columns.items())
        properties = f"SET TBLPROPERTIES ({_properties(change.properties)})"
        try:
            self.commits.run(name, f"ALTER TABLE {{table}} {f'ADD COLUMNS ({new})' if new else properties}")
        finally:
            self.forget(name)
        return True

    def append(self, name: str, rows: Sequence[dict[str, Any]], txn: Txn | None = None) -> bool:
        """See Tables."""
        return self.append_table(name, pa.Table.from_pylist(list(rows), schema=arrow_schema(self.table(name))), txn)

    def append_table(self, name: str, data: pa.Table, txn: Txn | None = None) -> bool:
        """See Tables."""
        return self.commits.append(name, frame(self.session(), data).coalesce(1), txn)

    def commit_txn_only(self, name: str, txn: Txn) -> bool:
        """See Tables."""
        return self.append_table(name, self.schema(name).empty_table(), txn)

    def append_next(self, name: str, version: int, row: dict[str, Any], unless: str, txn: Txn | None = None) -> bool:
        """See Tables. A MERGE that reads the rows that `unless` names and writes one: anyone who appends such a row
        meanwhile is a conflict, since tables are Serializable.
        """
        data = pa.Table.from_pylist([row], schema=arrow_schema(self.table(name)))
        return bool(self.commits.insert(name, frame(self.session(), data), unless, txn))

    def ensure_durable(self, name: str) -> None:
        """See Tables."""
        table = self.open(name)
        committer(table.table_uri).ensure_durable(table)

    def delete(self, name: str, where: str) -> int:
        """See Tables."""
        rows = self.session().read.format("delta").load(self.path(name)).where(where).count()
        if rows:
            self.commits.run(name, f"DELETE FROM {{table}} WHERE {where}")
        return int(rows)

    def drop_buckets(self, name: str, before: str, under_way: Callable[[], UnderWay] | None = None) -> Size:
        """See Tables."""
        going = self._below(name, before)
        if going.files:
            done = f" AND {_done(under_way())}" if under_way else ""
            self.commits.run(name, f"DELETE FROM {{table}} WHERE bucket < {text(before)}{done}")
            left = self._below(name, before)
            going = Size(going.files - left.files, going.rows - left.rows, going.bytes - left.bytes)
        return going

    def _below(self, name: str, before: str) -> Size:
        return sum((size for bucket, size in sizes_of(self.files(name), "bucket").items() if bucket < before), Size())

    def drop_before(self, name: str, column: str, before: datetime) -> bool:
        """See Tables."""
        actions = self.files(name)
        oldest = actions[f"min.{column}"].to_pylist() if actions.num_rows else []
        if not any(time_ is not None and time_ < before for time_ in oldest):
            return False
        older = f"{column} < {timestamp(before.astimezone(UTC))}"
        return self.commits.run(name, f"DELETE FROM {{table}} WHERE {older}") is not None

    def compact(self, name: str, fewest: int) -> int:
        """See Tables."""
        files = int(self.files(name).num_rows)
        if files < fewest:
            return 0
        self.commits.run(name, "OPTIMIZE {table}")
        return max(files - int(self.files(name).num_rows), 0)


def _done(under_way: UnderWay) -> str:
    """Rows of batches that are settled, by their replica and number: a DELETE fixes its version after the question."""
    of = " OR ".join(f"(replica = {text(name)} AND batch <= {last})" for name, last in under_way.planned.items())
    open_ = f" AND batch NOT IN ({', '.join(str(number) for number in under_way.open)})" if under_way.open else ""
    return f"({of or 'FALSE'}){open_}"


def _properties(values: Mapping[str, str]) -> str:
    return ", ".join(f"{text(key)} = {text(value)}" for key, value in values.items())
