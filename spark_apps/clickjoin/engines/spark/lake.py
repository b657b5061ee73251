"""`engine: spark`: every step is Spark jobs over Delta reads, every commit is Delta's own writer's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from clickjoin.engines.optimize import optimize
from clickjoin.engines.port import JoinInput, Lake, Outcome, Rebuilt, RowChange
from clickjoin.engines.spark import changes, landing, outputs, rebuilding
from clickjoin.engines.spark.commits import Commits, alone
from clickjoin.engines.spark.resolving import resolve
from clickjoin.engines.spark.tables import SparkTables
from clickjoin.kernel import data_skipping
from clickjoin.lake.spark_reader import named_alone
from clickjoin.model.errors import LakeError
from clickjoin.model.extent import Extent
from clickjoin.spark.lazy import lazy
from clickjoin.spark.reach_lake import reaching

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engines.context import Context
    from clickjoin.kernel.adapter import Adapter
    from clickjoin.model.shards import Boundary
    from clickjoin.model.span import Span
    from clickjoin.model.txn import Txn
    from clickjoin.schemas import Table
    from clickjoin.sources.port import Source
    from clickjoin.spark.lazy import Session


class SparkLake(Lake):
    """See Lake."""

    delta: SparkTables
    commits: Commits

    def __init__(self, spark: Session, root: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        session = reaching(lazy(spark), root)
        super().__init__(session, SparkTables(session, root, sleep=sleep))
        self.commits = self.delta.commits
        self.sleep = sleep

    @property
    def conflict_reruns(self) -> int:  # type: ignore[override]
        """See Lake."""
        return self.commits.reruns

    def read(self, name: str, version: int | None = None) -> DataFrame:
        """A table by Delta's own reader, which keeps to all of its features."""
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(self.delta.path(name))

    def read_extent(
        self, name: str, extent: Extent, batch: int | None = None, shards: Iterable[int] | None = None
    ) -> DataFrame:
        """See SparkReader. As of the version that is the newest now."""
        rows = self.read(name, self.delta.version(name)).where(extent.sql(shards=shards))
        return rows if batch is None else rows.where(F.col("batch") == batch)

    def read_named(self, name: str, extent: Extent, keys: DataFrame) -> DataFrame:
        """See SparkReader. As of the version that is the newest now."""
        held = data_skipping.rows(data_skipping.within(self.delta.files(name), extent))
        return named_alone(self.read_extent(name, extent), keys, extent.rows, held)

    def warm_up(self, adapter: Adapter) -> None:
        """See Lake."""

    def land_ahead(self, ctx: Context, sources: Mapping[str, Source]) -> None:
        """See Lake: what is written outside of a commit would be no Delta writer's."""

    def land(self, ctx: Context, stream: str, source: Source, written: Any = None) -> dict[str, Any] | None:
        """See Lake."""
        return landing.land(self, ctx, stream, source)

    def put_aside(self, ctx: Context, stream: str, source: Source, facts: Mapping[str, Any], txn: Txn) -> None:
        """See Lake."""
        landing.put_aside(self, ctx, stream, source, facts, txn)

    def resolve(self, ctx: Context, work: JoinInput, *, fixed: bool) -> Outcome:
        """See Lake."""
        return resolve(self, ctx, work, fixed=fixed)

    def claim(self, ctx: Context, outcome: Outcome) -> bool:
        """See Lake."""
        return outputs.claim(self, ctx, outcome)

    def publish(self, ctx: Context, outcome: Outcome) -> None:
        """See Lake."""
        outputs.publish(self, ctx, outcome)

    def write_side_outputs(self, ctx: Context, outcome: Outcome, boundary: Callable[[], Boundary]) -> Mapping[str, int]:
        """See Lake."""
        return outputs.write_side_outputs(self, ctx, outcome, boundary)

    def append(self, name: str, rows: DataFrame | pa.Table, txn: Txn) -> bool:
        """See Lake."""
        if isinstance(rows, pa.Table):
            return self.delta.append_table(name, rows, txn)
        columns = [column for column in self.delta.columns(name) if column in rows.columns]
        return self.commits.append(name, rows.select(*(f"`{column}`" for column in columns)), txn)

    def insert_new(
        self, name: str, rows: pa.Table, extent: Extent | None = None, txn: Txn | None = None, *, by_id: bool = False
    ) -> int:
        """See Lake."""
        return changes.insert_new(self, name, rows, extent, txn, by_id=by_id)

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
        """See Lake."""
        return changes.delete_matched(self, name, events, extent, shards, same, up_to)

    def change_rows(self, name: str, change: RowChange) -> int:
        """See Lake."""
        return changes.change_rows(self, name, change)

    def count_rows(self, name: str, change: RowChange) -> int:
        """See Lake."""
        return changes.count_rows(self, name, change)

    def replace_rows(
        self, name: str, version: int, held: pa.Table, kept: pa.Table, same: Sequence[str], txn: Txn
    ) -> bool:
        """See Lake."""
        return changes.replace_rows(self, name, held, kept, same, txn)

    def output_of(self, ctx: Context, rows: pa.Table) -> pa.Table:
        """See Lake."""
        return rebuilding.output_of(self, ctx, rows)

    def rebuilt(self, ctx: Context, span: Span, *, writes: bool) -> Rebuilt:
        """See Lake."""
        return rebuilding.rebuilt(self, ctx, span)

    def replace_output(self, made: Rebuilt) -> bool:
        """See Lake."""
        return rebuilding.replace_output(self, made)

    def create_filled(self, table: Table, rows: DataFrame, name: str, order: str = "event_time") -> None:
        """See Lake."""
        if not self.delta.create(replace(table, name=name)):
            raise LakeError(f"{self.delta.path(name)}: is there already", remedy="Put it aside, and start again")
        spread = rows.select(*table.names).repartition(*(F.col(column) for column in table.partitions))
        self.commits.append(name, spread.sortWithinPartitions(*table.partitions, order))

    def rewrite(
        self, name: str, place: str | None = None, order: str = "event_time", *, whole: bool = False
    ) -> int | None:
        """See Lake."""
        with alone(self.spark):
            return optimize(self, name, place, order, whole)
