"""Tables by Spark's Delta writer alone: settings and schemas by SQL, rows of this process by DataFrame appends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.engines.port import Tables, UnderWay
from clickjoin.engines.spark.commits import Commits
from clickjoin.lake.committer import committer
from clickjoin.lake.maintenance import Size, sizes_of
from clickjoin.lake.table_settings import STATISTICS, settings
from clickjoin.model.extent import timestamp
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.schemas.format import ENGINE, FORMAT, KEY
from clickjoin.spark.commit_errors import already_there
from clickjoin.spark.lazy import lazy
from clickjoin.spark.views import named

if TYPE_CHECKING:
    from clickjoin.model.txn import Txn
    from clickjoin.schemas import Table
    from clickjoin.spark.lazy import Session


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
        """See Tables."""
        if self.exists(table.name):
            return False
        columns = ", ".join(f"`{c.name}` {c.type} COMMENT {_text(c.meaning)}" for c in table.columns)
        parts = f" PARTITIONED BY ({', '.join(f'`{name}`' for name in table.partitions)})" if table.partitions else ""
        properties = ", ".join(
            f"{_text(key)} = {_text(value)}"
            for key, value in (settings(table) | {KEY: str(FORMAT), ENGINE: "spark"}).items()
        )
        try:
            self.session().sql(
                f"CREATE TABLE delta.`{self.path(table.name)}` ({columns}) USING delta{parts} "
                f"COMMENT {_text(table.purpose)} TBLPROPERTIES ({properties})"
            )
        except Exception as error:
            self.forget(table.name)
            if already_there(error) and self.exists(table.name):
                return False
            raise
        return True

    def add_columns(
        self,
        name: str,
        columns: Mapping[str, str],
        comments: Mapping[str, str] | None = None,
        *,
        whose: str = "the adapter",
    ) -> None:
        """See Tables."""
        known = self.columns(name)
        self.require_addable(name, columns, whose, known)
        said = comments or {}
        new = [
            f"`{column}` {kind}" + (f" COMMENT {_text(said[column])}" if column in said else "")
            for column, kind in columns.items()
            if column not in known
        ]
        if new:
            self._alter(name, f"ADD COLUMNS ({', '.join(new)})")

    def add_statistics(self, name: str, columns: Sequence[str]) -> None:
        """See Tables."""
        known = (self.open(name).metadata().configuration or {}).get(STATISTICS, "").split(",")
        if any(known) and not set(columns) <= set(known):
            wanted = ",".join(dict.fromkeys([*known, *columns]))
            self._alter(name, f"SET TBLPROPERTIES ({_text(STATISTICS)} = {_text(wanted)})")

    def set_engine(self, engine: str) -> None:
        """See Tables."""
        if self.engine != engine:
            self._alter("journal", f"SET TBLPROPERTIES ({_text(ENGINE)} = {_text(engine)})")

    def _alter(self, name: str, change: str) -> None:
        """Change a table's settings; the next look is a new one, also where the table was just looked at."""
        try:
            self.commits.run(name, f"ALTER TABLE {{table}} {change}")
        finally:
            self.forget(name)

    def append(self, name: str, rows: Sequence[dict[str, Any]], txn: Txn | None = None) -> bool:
        """See Tables."""
        return self.append_table(name, pa.Table.from_pylist(list(rows), schema=arrow_schema(self.table(name))), txn)

    def append_table(self, name: str, data: pa.Table, txn: Txn | None = None) -> bool:
        """See Tables."""
        return self.commits.append(name, self.session().createDataFrame(data).coalesce(1), txn)

    def commit_txn_only(self, name: str, txn: Txn) -> bool:
        """See Tables."""
        return self.append_table(name, self.schema(name).empty_table(), txn)

    def append_next(self, name: str, version: int, row: dict[str, Any], unless: str, txn: Txn | None = None) -> bool:
        """See Tables. A MERGE that reads the rows that `unless` names and writes one: whoever appends such a row
        meanwhile is a conflict, since tables are Serializable.
        """
        data = pa.Table.from_pylist([row], schema=arrow_schema(self.table(name)))
        rows = self.session().createDataFrame(data).localCheckpoint()
        names = ", ".join(f"`{column}`" for column in data.column_names)
        values = ", ".join(f"s.`{column}`" for column in data.column_names)
        with named(rows) as view:
            added = self.commits.run(
                name,
                f"MERGE INTO {{table}} t USING {view} s ON {unless} "
                f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})",
                txn,
            )
        return bool(added)

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
            self.commits.run(name, f"DELETE FROM {{table}} WHERE bucket < {_text(before)}{done}")
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


def _text(value: str) -> str:
    """A text as a SQL literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _done(under_way: UnderWay) -> str:
    """Rows of batches that are settled, by their replica and number: a DELETE fixes its version after the question."""
    of = " OR ".join(f"(replica = {_text(name)} AND batch <= {last})" for name, last in under_way.planned.items())
    open_ = f" AND batch NOT IN ({', '.join(str(number) for number in under_way.open)})" if under_way.open else ""
    return f"({of or 'FALSE'}){open_}"
