"""The Spark session of one process: reads, appends and statements against the model of Delta."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tests.simulator import statements
from tests.simulator.frames import DataFrame, Rows, as_rows
from tests.simulator.model import Commit, File, Lake, Reading, Snapshot, Table
from tests.simulator.sql_statements import statement
from tests.simulator.values import names_of_ddl

TXN_APP = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"


class Conf:
    """Settings of a session."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def set(self, name: str, value: Any) -> None:
        """Set one."""
        self._known[name] = str(value)

    def unset(self, name: str) -> None:
        """Unset one."""
        self._known.pop(name, None)

    def get(self, name: str, default: Any = None) -> Any:
        """One, or a default."""
        return self._known.get(name, default)


class SparkSession:
    """A session on a lake."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.conf = Conf()
        self.views: dict[str, DataFrame] = {}
        self.catalog = self

    def dropTempView(self, name: str) -> bool:
        """Forget a view."""
        return self.views.pop(name, None) is not None

    @property
    def read(self) -> Reader:
        """A reader."""
        return Reader(self)

    def createDataFrame(self, data: Iterable[Any], schema: Any = None) -> DataFrame:
        """Rows given by hand, or as Arrow."""
        if isinstance(data, pa.Table):
            given = data.to_pylist()
            return DataFrame(self, data.column_names, lambda: given)
        names = names_of_ddl(schema) if isinstance(schema, str) else list(schema)
        held = as_rows(data, names)
        return DataFrame(self, names, lambda: held)

    def range(self, start: int, end: int | None = None, step: int = 1, numPartitions: int = 1) -> DataFrame:
        """Numbers."""
        numbers = range(start) if end is None else range(start, end, step)
        return DataFrame(self, ["id"], lambda: [{"id": at} for at in numbers])

    def sql(self, text: str) -> DataFrame:
        """A query is not interpreted; a statement runs at once, and its counts are the rows."""
        done = statements.run(self, statement(text))
        return DataFrame(self, list(done[0]) if done else ["num_affected_rows"], lambda: done)

    def table(self, path: str) -> Table:
        """The table at a path. Errors: as Spark's where there is none."""
        found = self.lake.table(path)
        if found is None:
            raise ValueError(f"[DELTA_TABLE_NOT_FOUND] {path}")
        return found

    def begin(self, table: Table, options: Mapping[str, Any]) -> tuple[Reading, dict[str, int] | None]:
        """Begin a transaction; its txn as {app: version} (empty without one), None where the table holds it already."""
        read = Reading(self.lake.look(table))
        app = options.get("txnAppId") or self.conf.get(TXN_APP)
        if not app:
            return read, {}
        version = int(options.get("txnVersion") or self.conf.get(TXN_VERSION))
        read.apps.add(app)
        return read, None if read.snapshot.txns.get(app, -1) >= version else {app: version}

    def files_for(self, table: Table, snapshot: Snapshot, where: Any) -> list[File]:
        """Files of a snapshot that can hold rows for which terms are true."""
        return [file for file in snapshot.files.values() if where(file)]


class Reader:
    """spark.read."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._options: dict[str, Any] = {}
        self._schema = ""

    def format(self, name: str) -> Reader:
        """Delta only."""
        assert name == "delta", name
        return self

    def option(self, name: str, value: Any) -> Reader:
        """An option: versionAsOf."""
        self._options[name] = value
        return self

    def schema(self, ddl: str) -> Reader:
        """Columns to read from Parquet files."""
        self._schema = ddl
        return self

    def load(self, path: str) -> DataFrame:
        """A table: as of one version, or as of when the plan is evaluated."""
        table, version = self._spark.table(path), self._options.get("versionAsOf")
        lake = self._spark.lake
        if version is None:
            return DataFrame(self._spark, table.columns, lambda: lake.look(table).rows())
        pinned = table.at_version(version)
        return DataFrame(self._spark, table.columns, lambda: _present(lake, table, pinned))

    def parquet(self, *paths: str) -> DataFrame:
        """Files by name. Errors: as Spark's where one is gone."""
        names = names_of_ddl(self._schema)
        lake = self._spark.lake

        def rows() -> Rows:
            missing = [path for path in paths if path not in lake.files]
            if missing:
                raise FileNotFoundError(f"FileNotFoundException: {missing[0]}")
            found = [row for path in paths for row in lake.files[path].rows]
            if found and found[0].keys() != set(names):
                return [{name: row[name] for name in names} for row in found]
            return found

        return DataFrame(self._spark, names, rows)


def _present(lake: Lake, table: Table, snapshot: Snapshot) -> Rows:
    for path in snapshot.files:
        if f"{table.path}/{path}" not in lake.files:
            raise FileNotFoundError(f"FileNotFoundException: {table.path}/{path}")
    return snapshot.rows()


class Writer:
    """df.write: appends."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self._options: dict[str, Any] = {}

    def format(self, name: str) -> Writer:
        """Delta only."""
        assert name == "delta", name
        return self

    def mode(self, name: str) -> Writer:
        """Append only."""
        assert name == "append", name
        return self

    def option(self, name: str, value: Any) -> Writer:
        """An option: txnAppId, txnVersion."""
        self._options[name] = value
        return self

    def save(self, path: str) -> None:
        """Append in one commit; a replay of a txn is skipped before the rows are evaluated."""
        spark = self._frame.sparkSession
        table = spark.table(path)
        read, txns = spark.begin(table, self._options)
        if txns is None:
            return
        rows = self._frame.rows()
        names: Sequence[str] = list(table.columns)
        given = set(self._frame.columns)
        held = [{name: row[name] if name in given else None for name in names} for row in rows]
        spark.lake.commit_spark(table, read, Commit(adds=spark.lake.write(table, held), txns=txns))
