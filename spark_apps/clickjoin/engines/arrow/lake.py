"""`engine: arrow`: the kernel works, in this process where a batch is small, else in tasks; delta-rs commits."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark.sql import functions as F

from clickjoin.engines.arrow import joining, landing, rebuilding, side_outputs
from clickjoin.engines.arrow.claims import claim
from clickjoin.engines.arrow.insert_new import insert_new
from clickjoin.engines.arrow.land_ahead import LandedAhead, land_ahead
from clickjoin.engines.arrow.late_output import output_of
from clickjoin.engines.arrow.replace_rows import replace_rows
from clickjoin.engines.arrow.rewrite_rows import Files, count_rows, near, rewrite_rows
from clickjoin.engines.arrow.tables import ArrowTables
from clickjoin.engines.commit_errors import commit_error, given_up
from clickjoin.engines.optimize import optimize
from clickjoin.engines.port import JoinInput, Lake, Outcome, Rebuilt, RowChange
from clickjoin.kernel.data_file import DataFile, Target, write_batches
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.rewrite_task import Change, Events
from clickjoin.kernel.rewrite_task import change as kernel_change
from clickjoin.lake.committer import committer
from clickjoin.lake.row_groups import for_look_ups
from clickjoin.model import failpoint
from clickjoin.model.errors import CommitStateUnknown, LakeError
from clickjoin.model.extent import Extent
from clickjoin.model.ids import EVENT_KEY
from clickjoin.model.places import is_on_s3
from clickjoin.model.txn import Txn
from clickjoin.schemas import Table
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.spark.lazy import lazy
from clickjoin.spark.reach_lake import reaching

T = TypeVar("T")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engines.context import Context
    from clickjoin.kernel.adapter import Adapter
    from clickjoin.model.shards import Boundary
    from clickjoin.model.span import Span
    from clickjoin.sources.port import Source
    from clickjoin.spark.lazy import Session


_RERUNS = 30


class ArrowLake(Lake):
    """See Lake: files that lie beside a table are committed as the very next version after one that was looked at."""

    def __init__(self, spark: Session, root: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(reaching(lazy(spark), root), ArrowTables(root))
        self.delta: ArrowTables
        self.conflict_reruns = 0
        self.sleep = sleep

    def warm_up(self, adapter: Adapter) -> None:
        """See Lake."""
        if self.started:
            joining.warm_up(self.started, adapter)

    def land_ahead(self, ctx: Context, sources: Mapping[str, Source]) -> LandedAhead:
        """See Lake."""
        return land_ahead(self, ctx, sources)

    def land(self, ctx: Context, stream: str, source: Source, written: Any = None) -> dict[str, Any] | None:
        """See Lake."""
        return landing.land(self, ctx, stream, source, written)

    def put_aside(self, ctx: Context, stream: str, source: Source, facts: Mapping[str, Any], txn: Txn) -> None:
        """See Lake."""
        landing.put_aside(self, ctx, stream, source, facts, txn)

    def resolve(self, ctx: Context, work: JoinInput, *, fixed: bool) -> Outcome:
        """See Lake."""
        return joining.resolve(self, ctx, work, fixed=fixed)

    def claim(self, ctx: Context, outcome: Outcome) -> bool:
        """See Lake."""
        return claim(self, ctx, outcome.rows)

    def publish(self, ctx: Context, outcome: Outcome) -> None:
        """See Lake."""
        side_outputs.publish(self, ctx, outcome)

    def write_side_outputs(self, ctx: Context, outcome: Outcome, boundary: Callable[[], Boundary]) -> Mapping[str, int]:
        """See Lake."""
        return side_outputs.write_side_outputs(self, ctx, outcome, boundary)

    def append(self, name: str, rows: DataFrame | pa.Table, txn: Txn) -> bool:
        """See Lake. Rows of a DataFrame are written by tasks."""
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
        """See Lake. Not by Spark alone, which takes no property that is not Delta's."""
        if not self.delta.create(replace(table, name=name)):
            raise LakeError(f"{self.delta.path(name)}: is there already", remedy="Put it aside, and start again")
        spread = rows.repartition(*(F.col(column) for column in table.partitions))
        writer = spread.sortWithinPartitions(*table.partitions, order).write.format("delta").mode("append")
        with for_look_ups(self.spark, table.name), failpoint.around_commit(name):
            writer.save(self.delta.path(name))

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
        names, known = (*EVENT_KEY, *same, *up_to), self.delta.schema(name)
        keys = events.select(*names).toArrow().cast(pa.schema([known.field(column) for column in names]))
        return rewrite_rows(self, name, near(keys, extent, shards), kernel_change(Events(keys, same, up_to)))

    def insert_new(
        self, name: str, rows: pa.Table, extent: Extent | None = None, txn: Txn | None = None, *, by_id: bool = False
    ) -> int:
        """See Lake."""
        return insert_new(self, name, rows, extent, txn, by_id=by_id)

    def change_rows(self, name: str, change: RowChange) -> int:
        """See Lake."""
        return rewrite_rows(self, name, *_meant(change))

    def count_rows(self, name: str, change: RowChange) -> int:
        """See Lake."""
        return count_rows(self, name, *_meant(change))

    def replace_rows(
        self, name: str, version: int, held: pa.Table, kept: pa.Table, same: Sequence[str], txn: Txn
    ) -> bool:
        """See Lake."""
        return replace_rows(self, name, version, held, kept, same, txn)

    def output_of(self, ctx: Context, rows: pa.Table) -> pa.Table:
        """See Lake."""
        return output_of(self, ctx, rows)

    def rebuilt(self, ctx: Context, span: Span, *, writes: bool) -> Rebuilt:
        """See Lake."""
        return rebuilding.rebuilt(self, ctx, span, writes=writes)

    def replace_output(self, made: Rebuilt) -> bool:
        """See Lake."""
        return rebuilding.replace_output(self, made)

    def rewrite(
        self, name: str, place: str | None = None, order: str = "event_time", *, whole: bool = False
    ) -> int | None:
        """See Lake."""
        return optimize(self, name, place, order, whole)

    def rerun(self, name: str, commit: Callable[[], T]) -> T:
        """Commit to a table, again where another writer came first or the answer was lost: a rerun finds what landed.

        Errors: CommitConflict after many refusals, CommitStateUnknown after as many lost answers, LakeReplaced.
        """
        unknown: Exception | None = None
        # On S3 a commit of this process looks by itself whether the lake is still the same.
        require_same = (lambda: None) if is_on_s3(self.delta.root) else self.delta.require_same
        for attempt in range(_RERUNS):
            require_same()
            try:
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
        raise given_up(self.delta.path(name), _RERUNS, unknown) from unknown


def _meant(change: RowChange) -> tuple[Files, Change]:
    """The files that can hold rows of a change, and the kernel's form of it."""
    meant = kernel_change(change.meant, change.values, with_record=change.with_record)
    return near(change.meant.keys, change.extent) if isinstance(change.meant, Events) else lambda files: files, meant
