"""Large tables as DataFrames, read from just the files that can hold what is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError

from clickjoin.kernel import data_skipping
from clickjoin.kernel.types import delta_type
from clickjoin.lake import small_reads
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.lost_files import BadFile, passing_over
from clickjoin.lake.table_format import column_types
from clickjoin.spark.lazy import lazy
from clickjoin.spark.session import compile_code

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from clickjoin.model.extent import Extent
    from clickjoin.spark.lazy import Session

_MAX_KEYS, _MIN_ROWS, _ROWS_PER_KEY = 200_000, 100_000, 4
_WORTH_COMPILING = 500_000  # rows that are passed over, or joined to; of rows to join, a tenth (spark.session)


class SparkReader:
    """The tables of one pipeline, to read with Spark; `delta`: the same through their logs.

    `session`: where the session comes from; others that are given it share that one.
    """

    def __init__(self, spark: Session, delta: DeltaReader) -> None:
        self.session = lazy(spark)
        self.delta = delta
        self._unread: frozenset[tuple[str, str]] = frozenset()

    @property
    def spark(self) -> SparkSession:
        """The session; it is started by the first who asks. Errors: those of its start."""
        return self.session()

    @property
    def started(self) -> SparkSession | None:
        """The session if it has been started: for what is worth doing only where there is one."""
        return self.session.started

    @contextmanager
    def without(self, bad: Iterable[BadFile]) -> Iterator[None]:
        """Read tables as if files that cannot be read held no rows."""
        self._unread = frozenset((file.table, file.path) for file in bad)
        try:
            with passing_over(self.spark, bool(self._unread)):
                yield
        finally:
            self._unread = frozenset()

    def passes_over(self, name: str, path: str) -> bool:
        """Whether a file of a table is one of those that cannot be read."""
        return (name, path) in self._unread

    def read(self, name: str, version: int | None = None) -> DataFrame:
        """A table as a DataFrame, at its newest version or at the one given."""
        few = None if self._unread else self._few(name, version)
        if few is not None:
            return few
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(self.delta.path(name))

    def _few(self, name: str, version: int | None) -> DataFrame | None:
        try:
            table = self.delta.open(name) if version is None else self.delta.at(name, version)
        except DeltaError:  # that version is gone: Spark says so by name
            return None
        return small_reads.rows_of_version(self.spark, self.delta.path(name), table, column_types(table))

    def read_extent(
        self, name: str, extent: Extent, batch: int | None = None, shards: Iterable[int] | None = None
    ) -> DataFrame:
        """Rows of an extent (of one batch, of some shards), from just the files that can hold them.

        It stays what it was when this was called, whatever is committed meanwhile.
        """
        files = data_skipping.within(self.delta.files(name), extent, batch, shards)
        rows = self._of_files(name, files).where(extent.sql(shards=shards))
        return rows if batch is None else rows.where(f"batch = {batch}")

    def read_named(self, name: str, extent: Extent, keys: DataFrame) -> DataFrame:
        """Rows of an extent, of which those that no key names may be left out: they are, where the keys are few.

        `keys`: columns of the table, as many rows as the extent has. A day's rows are not sorted and sent about for the
        sake of a few late events.
        """
        files = data_skipping.within(self.delta.files(name), extent)
        rows, held = self._of_files(name, files).where(extent.sql()), data_skipping.rows(files)
        if held > _WORTH_COMPILING:
            compile_code(self.spark, True)
        return named_alone(rows, keys, extent.rows, held)

    def _of_files(self, name: str, files: pa.Table) -> DataFrame:
        table = self.delta.table(name)
        # As Spark has them: partitions come last.
        columns = sorted(table.columns, key=lambda column: column.name in table.partitions)
        kinds = {column.name: delta_type(column.type) for column in columns}
        few = None if self._unread else small_reads.rows_of_files(self.spark, self.delta.path(name), files, kinds)
        return self._read(name, data_skipping.paths(files)) if few is None else few

    def _read(self, name: str, files: list[str], ddl: str = "") -> DataFrame:
        ddl, root = ddl or self.delta.table(name).ddl, self.delta.path(name)
        files = [file for file in files if not self.passes_over(name, file)]
        if not files:
            return self.spark.createDataFrame([], ddl)
        reader = self.spark.read.schema(ddl).option("basePath", root)
        return reader.parquet(*(f"{root}/{file}" for file in files))


def named_alone(rows: DataFrame, keys: DataFrame, wanted: int, held: int) -> DataFrame:
    """Rows, without those that no key names where that is worth it: `wanted` keys, beside the rows that files hold."""
    if wanted > _MAX_KEYS or held < max(_MIN_ROWS, _ROWS_PER_KEY * wanted):
        return rows
    return rows.join(keys.hint("broadcast"), list(keys.columns), "left_semi").select(*rows.columns)
