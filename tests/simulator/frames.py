"""DataFrames over lists of dicts: lazy as Spark's, so that a read is a snapshot of when the plan is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.simulator.columns import Column, as_column, col
from tests.simulator.groups import Grouped, windowed
from tests.simulator.sql import expression
from tests.simulator.values import Row, Struct, names_of_ddl, order_key

if TYPE_CHECKING:
    from tests.simulator.session import SparkSession

Rows = list[dict[str, Any]]


def _column(item: Any) -> Column:
    return col(item) if isinstance(item, str) else as_column(item)


def _condition(item: Any) -> Column:
    return expression(item) if isinstance(item, str) else as_column(item)


class DataFrame:
    """A plan: its columns' names, and how to get its rows. `rows()` evaluates it; rows are never changed in place."""

    def __init__(self, spark: SparkSession, columns: Sequence[str], rows: Callable[[], Rows]) -> None:
        self.sparkSession = spark
        self.columns = list(columns)
        self.rows = rows

    def _make(self, columns: Sequence[str], rows: Callable[[], Rows]) -> DataFrame:
        return DataFrame(self.sparkSession, columns, rows)

    def __getitem__(self, name: str) -> Column:
        return col(name)

    def where(self, condition: Any) -> DataFrame:
        """Rows for which it is true."""
        fn = _condition(condition).fn
        assert fn
        return self._make(self.columns, lambda: [row for row in self.rows() if fn(row) is True])

    filter = where

    def withColumn(self, name: str, column: Column) -> DataFrame:
        """One column more, or another one."""
        return self.withColumns({name: column})

    def withColumns(self, made: dict[str, Column]) -> DataFrame:
        """Columns more, all of the rows as they were."""
        columns = [*self.columns, *(name for name in made if name not in self.columns)]
        if any(column.window for column in made.values()):
            return self._make(columns, lambda: windowed(self.rows(), made))
        pairs = [(name, column.fn) for name, column in made.items()]

        def rows() -> Rows:
            return [row | {name: fn(row) for name, fn in pairs} for row in self.rows()]  # type: ignore[misc]

        return self._make(columns, rows)

    def withColumnRenamed(self, old: str, new: str) -> DataFrame:
        """A column under another name."""
        return self.select(*[col(name).alias(new if name == old else name) for name in self.columns])

    def drop(self, *names: str) -> DataFrame:
        """Without some columns."""
        return self.select(*[name for name in self.columns if name not in names])

    def select(self, *items: Any) -> DataFrame:
        """Some columns; `*` and `name.*` too."""
        given = items[0] if len(items) == 1 and isinstance(items[0], (list, tuple)) else items
        if any(isinstance(item, str) and item.endswith("*") for item in given):
            return self._starred(given)
        columns = [_column(item) for item in given]
        names = [column.name.rpartition(".")[2] if "(" not in column.name else column.name for column in columns]
        pairs = [(name, column.fn) for name, column in zip(names, columns, strict=True)]
        if any(column.fold for column in columns):
            return self.agg(*columns)

        def rows() -> Rows:
            return [{name: fn(row) for name, fn in pairs} for row in self.rows()]  # type: ignore[misc]

        return self._make(names, rows)

    def selectExpr(self, *texts: str) -> DataFrame:
        """Columns by SQL texts."""
        return self.select(*[text if text == "*" else expression(text) for text in texts])

    def _starred(self, given: Sequence[Any]) -> DataFrame:
        whole: list[Any] = []
        for item in given:
            if item == "*":
                whole += self.columns
            elif isinstance(item, str) and item.endswith(".*"):
                whole += [f"{item[:-2]}.{name}" for name in self._fields(item[:-2])]
            else:
                whole.append(item)
        return self.select(*whole)

    def _fields(self, name: str) -> Sequence[str]:
        fields: Sequence[str] = getattr(self, "structs", {})[name]
        return fields

    def unionAll(self, other: DataFrame) -> DataFrame:
        """Both, column by column in order."""

        def rows() -> Rows:
            mine, theirs = self.rows(), other.rows()
            if self.columns == other.columns:
                return mine + theirs
            pairs = list(zip(self.columns, other.columns, strict=True))
            return mine + [{a: row[b] for a, b in pairs} for row in theirs]

        return self._make(self.columns, rows)

    union = unionAll

    def unionByName(self, other: DataFrame, allowMissingColumns: bool = False) -> DataFrame:
        """Both, columns by name."""
        return self.unionAll(other.select(*self.columns))

    def distinct(self) -> DataFrame:
        """Without equal rows."""
        return self.dropDuplicates(self.columns)

    def dropDuplicates(self, names: Sequence[str] | None = None) -> DataFrame:
        """The first row of each key."""
        keys = list(names or self.columns)

        def rows() -> Rows:
            found: dict[Any, dict[str, Any]] = {}
            for row in self.rows():
                found.setdefault(tuple(row[key] for key in keys), row)
            return list(found.values())

        return self._make(self.columns, rows)

    def join(self, other: DataFrame, on: Any = None, how: str = "inner") -> DataFrame:
        """Both, side by side where they match."""
        from tests.simulator.joins import join

        return join(self, other, on, how)

    def crossJoin(self, other: DataFrame) -> DataFrame:
        """Every pair."""
        return self.join(other, as_column(True))

    def groupBy(self, *names: Any) -> Grouped:
        """Groups by some columns."""
        return Grouped(self, [_column(name) for name in names])

    def agg(self, *columns: Column) -> DataFrame:
        """Aggregates of all rows: one row."""
        return Grouped(self, []).agg(*columns)

    def orderBy(self, *items: Any) -> DataFrame:
        """Sorted, nulls first."""
        fns = [_column(item).fn for item in items]
        return self._make(self.columns, lambda: sorted(self.rows(), key=lambda r: [order_key(f(r)) for f in fns]))  # type: ignore[misc]

    sort = orderBy

    def limit(self, number: int) -> DataFrame:
        """The first rows."""
        return self._make(self.columns, lambda: self.rows()[:number])

    def coalesce(self, _: int) -> DataFrame:
        """The same: there are no partitions."""
        return self

    def hint(self, *_: str) -> DataFrame:
        """The same: how rows are joined is Spark's affair."""
        return self

    def localCheckpoint(self, eager: bool = True) -> DataFrame:
        """Evaluated once, and then held."""
        held: list[Rows] = []

        def rows() -> Rows:
            if not held:
                held.append(self.rows())
            return held[0]

        if eager:
            rows()
        return self._make(self.columns, rows)

    def cache(self) -> DataFrame:
        """Held, as far as Spark holds what is cached: not over another commit."""
        return self

    persist = cache

    def unpersist(self, blocking: bool = False) -> DataFrame:
        """Nothing to let go."""
        return self

    def mapInArrow(self, each: Any, ddl: str) -> DataFrame:
        """What a task makes of the rows."""

        def rows() -> Rows:
            batches = each(iter(pa.Table.from_pylist(self.rows()).to_batches()))
            return [row for batch in batches for row in batch.to_pylist()]

        return self._make(names_of_ddl(ddl), rows)

    def collect(self) -> list[Row]:
        """The rows."""
        names = tuple(self.columns)
        return [Row.of(names, row) for row in self.rows()]

    def toArrow(self) -> pa.Table:
        """The rows, as Arrow."""
        rows = self.rows()
        return pa.table({name: [row[name] for row in rows] for name in self.columns})

    def count(self) -> int:
        """How many rows."""
        return len(self.rows())

    def isEmpty(self) -> bool:
        """Whether there is no row."""
        return not self.rows()

    def first(self) -> Row | None:
        """The first row."""
        return next(iter(self.limit(1).collect()), None)

    def createOrReplaceTempView(self, name: str) -> None:
        """Name this plan for SQL statements."""
        self.sparkSession.views[name] = self

    @property
    def write(self) -> Any:
        """How it is written to a table."""
        from tests.simulator.session import Writer

        return Writer(self)


def as_rows(values: Iterable[Any], columns: Sequence[str]) -> Rows:
    """Tuples, lists or dicts as rows."""
    return [dict(v) if isinstance(v, dict) else dict(zip(columns, v, strict=True)) for v in values]


__all__ = ["DataFrame", "Struct", "as_rows"]
