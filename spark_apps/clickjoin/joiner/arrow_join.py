"""The joiner that works by Arrow: a batch's buckets are dealt out to tasks, which screen, look up, adapt and write.

Only for new records, and adapters that need no Spark. What a batch has claimed already goes by spark_join alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from clickjoin.event_store.join_input import JoinInput
from clickjoin.joiner.port import MAX_DRIVER_ROWS, DataFiles, Outcome, Tally
from clickjoin.kernel import adapter_output, data_skipping, join_task
from clickjoin.kernel.adapter import Adapter, ArrowAdapter, needs_spark
from clickjoin.kernel.data_file import DataFile
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.join_task import Files, Job, Part
from clickjoin.model.errors import AdapterError
from clickjoin.model.extent import Extent
from clickjoin.model.ids import MICROS, moment
from clickjoin.registry import by_id
from clickjoin.schemas import FILTERED, FOREIGN, REGISTRY
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.spark.failures import adapter_fault
from clickjoin.spark.ship import ship_adapter

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from clickjoin.batch_context import Context

_ROWS_A_PART = 200_000
_ROWS_A_TASK, _FILES_A_TASK = 40_000, 512
_RESULT = f"{FOREIGN.ddl}, status STRING, done STRING"


def can_join(ctx: Context) -> bool:
    """Whether a batch can be joined this way: new records, and an adapter that needs no Spark."""
    return ctx.plan.sequence == "join" and not needs_spark(ctx.adapter)


class ArrowJoin:
    """Joins by tasks on Arrow tables, which write what joins to files: several times as fast as Spark's operators."""

    def join(self, ctx: Context, work: JoinInput) -> Outcome:
        """See port.Joiner. Nothing is committed: what has been written becomes real with the claim."""
        claims = ctx.lake.delta.files("registry")
        cells = _cells(ctx, work.own, claims)
        tasks = _tasks(ctx.lake.delta.path("registry"), cells, ctx.pipeline.batch.parallelism)
        ship_adapter(type(ctx.adapter))
        each = checked(join_task.work_of(_job(ctx, work), tasks))
        rows = ctx.lake.spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(each, _RESULT).localCheckpoint(eager=False)
        done = _done(ctx, rows)
        tallies = _tallies(done)
        ctx.counts["false_positives"] = sum(part["false_positives"] for part in done)
        files = DataFiles(_files(done), frozenset(claims["path"].to_pylist()))
        return Outcome(_unwritten(rows), tallies, _fits_driver(ctx, tallies), files, misfits=_misfits(done))


def warm_up(spark: SparkSession, adapter: Adapter) -> None:
    """Run a task of no events, so that a new session and its Python worker have loaded what those of a batch need.

    One task: on two cores another process's batch has the other core meanwhile.
    """
    if needs_spark(adapter):
        return
    ship_adapter(type(adapter))
    no_job = cast("Job", None)  # no part asks for it
    each = checked(join_task.work_of(no_job, [[]]))
    rows = spark.range(0, 1, 1, 1).mapInArrow(each, _RESULT).localCheckpoint(eager=False)
    rows.where("done IS NOT NULL").select("done").collect()


def _unwritten(rows: DataFrame) -> DataFrame:
    tried = {"round": F.lit(0), "attempt": F.lit(0), "first_seen": F.col("landed_at")}
    return rows.where("done IS NULL").drop("done").withColumns(tried)


def _tallies(done: Sequence[dict[str, Any]]) -> dict[str, Tally]:
    names = sorted({name for part in done for name in part["tallies"]})
    tallies = {name: _tally(part["tallies"][name] for part in done if name in part["tallies"]) for name in names}
    return {name: tally for name, tally in tallies.items() if tally.extent.rows}


def _misfits(done: Sequence[dict[str, Any]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for part in done:
        found.update(part.get("misfits", {}))
    return dict(found)


def _files(done: Sequence[dict[str, Any]]) -> dict[str, list[DataFile]]:
    files: dict[str, list[DataFile]] = {}
    for name, written in ((name, written) for part in done for name, written in part["files"].items()):
        files.setdefault(name, []).extend(DataFile(*file) for file in written)
    return files


def _done(ctx: Context, rows: DataFrame) -> list[dict[str, Any]]:
    try:
        return [json.loads(row["done"]) for row in rows.where("done IS NOT NULL").select("done").collect()]
    except Exception as error:
        fault = adapter_fault(error)
        if fault is None:
            raise
        raise AdapterError(
            f"adapter {ctx.pipeline.adapter}: merge_table {fault}",
            remedy="Fix the adapter; nothing of this batch was claimed",
        ) from error


def _fits_driver(ctx: Context, tallies: dict[str, Tally]) -> bool:
    left = [tallies[name] for name in ("pending", "expired") if name in tallies]
    rows, size = sum(tally.extent.rows for tally in left), sum(tally.size for tally in left)
    return rows <= MAX_DRIVER_ROWS and size <= ctx.pipeline.batch.driver_bytes


def _job(ctx: Context, work: JoinInput) -> Job:
    plan, lake, lookback = ctx.plan, ctx.lake, ctx.pipeline.lookback
    primaries = data_skipping.within(lake.delta.files("primary"), work.named)
    assert isinstance(ctx.adapter, ArrowAdapter)
    made = adapter_output.made_of(ctx.adapter.columns, misfits=ctx.adapter.reports_misfits)
    joined = lake.delta.table("joined")
    output = pa.schema([*arrow_schema(joined), *(made.field(name) for name in ctx.adapter.columns)])
    targets = {
        "registry": lake.target(REGISTRY),
        "joined": lake.target(joined, output),
        "filtered": lake.target(FILTERED),
    }
    return Job(
        plan.number, plan.replica, plan.token, {shard: _micros(at) for shard, at in ctx.boundary.items()},
        None if ctx.floor is None else _micros(ctx.floor),
        None if lookback is None else round(lookback * MICROS),
        lake.delta.path("foreign"), arrow_schema(FOREIGN), _held(lake.delta.path("primary"), primaries),
        targets, ctx.adapter, made, ctx.pipeline.stream is not None,
        ctx.pipeline.by_id,
    )  # fmt: skip


def _held(root: str, files: pa.Table) -> Files:
    return Files(root, tuple(data_skipping.paths(files)), data_skipping.ends(files))


@dataclass(frozen=True)
class _Cell:
    """Some events of a bucket: of some shards (none named: all), how many, where they lie, and the claims beside."""

    bucket: str
    shards: tuple[int, ...]
    rows: int
    foreign: tuple[str, ...]
    claims: pa.Table

    @property
    def cost(self) -> float:
        return self.rows / _ROWS_A_TASK + (len(self.foreign) + int(self.claims.num_rows)) / _FILES_A_TASK


def _cells(ctx: Context, own: Extent, claims: pa.Table) -> list[_Cell]:
    files = data_skipping.within(ctx.lake.delta.files("foreign"), own, ctx.plan.number)
    claims = claims if ctx.pipeline.by_id else data_skipping.within(claims, own)
    found, one_shard = [], by_id.one_shard_each(ctx)
    for bucket in sorted(set(files["partition.bucket"].to_pylist())):
        mine, theirs = (some.filter(pc.equal(some["partition.bucket"], bucket)) for some in (files, claims))
        theirs = claims if ctx.pipeline.by_id else theirs
        for shards in _split(range(ctx.timeline.most), data_skipping.rows(mine)):
            held = theirs.filter(data_skipping.in_shards(theirs, shards)) if shards and one_shard else theirs
            found.append(_Cell(bucket, shards, data_skipping.rows(mine), tuple(data_skipping.paths(mine)), held))
    return found


def _split(shards: Sequence[int], rows: int) -> list[tuple[int, ...]]:
    """Groups of shards, so that each has about _ROWS_A_PART rows."""
    count = min(-(-rows // _ROWS_A_PART), len(shards))
    return [()] if count <= 1 else [tuple(shards[at::count]) for at in range(count)]


def _tasks(root: str, cells: Sequence[_Cell], most: int) -> list[list[Part]]:
    """Cells dealt out to `most` tasks of about the same cost, in order; what a task can do in one go is one part.

    Events of many buckets may name primary events of the same files, which each part reads again.
    """
    costs = np.array([cell.cost for cell in cells])
    whole = float(costs.sum())
    count = max(1, min(most, round(whole), len(cells)))
    dealt: list[list[_Cell]] = [[] for _ in range(count)]
    for cell, middle in zip(cells, np.cumsum(costs) - costs / 2, strict=True):
        dealt[min(int(middle * count / whole), count - 1)].append(cell)
    return [[_part(root, some) for some in _together(task)] for task in dealt if task]


def _together(cells: Sequence[_Cell]) -> list[list[_Cell]]:
    groups: list[list[_Cell]] = []
    for cell in cells:
        fits = groups and not cell.shards and sum(c.rows for c in groups[-1]) + cell.rows <= _ROWS_A_PART
        if fits and not groups[-1][0].shards:
            groups[-1].append(cell)
        else:
            groups.append([cell])
    return groups


def _part(root: str, cells: Sequence[_Cell]) -> Part:
    claims = pa.concat_tables([cell.claims for cell in cells])
    return Part(tuple((cell.bucket, cell.foreign) for cell in cells), cells[0].shards, _held(root, claims))


def _tally(parts: Iterable[dict[str, Any]]) -> Tally:
    held = [part for part in parts if part["rows"]]
    if not held:
        return Tally(Extent(0), frozenset(), (), 0)
    extent = Extent(
        sum(part["rows"] for part in held), tuple(sorted({name for part in held for name in part["buckets"]})),
        moment(min(part["low"] for part in held)), moment(max(part["high"] for part in held)),
    )  # fmt: skip
    shards = frozenset(shard for part in held for shard in part["shards"])
    return Tally(extent, shards, _exceeded(held), sum(part["size"] for part in held))


def _exceeded(held: Sequence[dict[str, Any]]) -> tuple[int, ...]:
    """Event times that 50, 90, 99 in 100 exceed, from some points of each part."""
    points = np.array([at for part in held for at in part["times"]], np.int64)
    if not len(points):
        return ()
    weights = np.array([part["rows"] / len(part["times"]) for part in held for _ in part["times"]])
    order = np.argsort(points)
    shares = np.cumsum(weights[order]) / weights.sum()
    last = len(points) - 1
    return tuple(int(points[order][min(int(np.searchsorted(shares, share)), last)]) for share in (0.5, 0.1, 0.01))


def _micros(at: datetime) -> int:
    return round(at.timestamp() * MICROS)
