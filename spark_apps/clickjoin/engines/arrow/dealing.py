"""How the events of a batch are dealt out to tasks of about the same cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel import data_skipping
from clickjoin.kernel.join_task import Part
from clickjoin.kernel.parquet_rows import Files
from clickjoin.model.ids import micros_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engines.context import Context
    from clickjoin.model.extent import Extent

_ROWS_A_PART = 200_000
_ROWS_A_TASK, _FILES_A_TASK = 40_000, 512
_ROWS_HERE = 20_000
_PACKED = 8  # bytes of records for one on disk, or more


def is_little(ctx: Context, rows: int, files: pa.Table) -> bool:
    """Whether this process joins some rows itself: one task would take them, and starting it is most of its time.

    `files`: those that hold their records; of each row about as much as of the files' others.
    """
    held = max(data_skipping.rows(files), 1)
    packed = (pc.sum(files["size_bytes"]).as_py() or 0) if files.num_rows else 0
    return rows <= _ROWS_HERE and rows * packed / held * _PACKED <= ctx.pipeline.batch.driver_bytes


def landed(ctx: Context, own: Extent) -> pa.Table:
    """The files that hold what a batch has landed of the foreign stream."""
    return data_skipping.within(ctx.lake.delta.files("foreign"), own, ctx.plan.number)


def new_records(ctx: Context, own: Extent, files: pa.Table, claims: pa.Table) -> list[list[Part]]:
    """The parts of each task, for events that have landed in some files; `claims`: the registry's files."""
    cells = _cells(ctx, own, files, claims)
    return _tasks(ctx.lake.delta.path("registry"), cells, ctx.pipeline.batch.parallelism)


def waiting(ctx: Context, rows: DataFrame, count: int) -> DataFrame:
    """Rows in a partition for each task: by time, so that tasks read different files; by id where that is the name."""
    tasks = max(min(count // _ROWS_A_TASK, ctx.pipeline.batch.parallelism), -(-count // _ROWS_A_PART))
    if tasks <= 1:
        return rows.coalesce(1)
    if ctx.pipeline.by_id:
        return rows.repartition(tasks, "event_id")
    return rows.repartitionByRange(tasks, "event_time", "event_id")


def as_files(root: str, files: pa.Table) -> Files:
    """Files of a table, for tasks."""
    return Files(root, tuple(data_skipping.paths(files)), data_skipping.ends(files))


@dataclass(frozen=True)
class _Cell:
    """Some events of a bucket, or by id of all: how many, where they lie, and the claims beside.

    `shards`: those that they are of; none named: all. `foreign`: buckets, each with its files.
    """

    shards: tuple[int, ...]
    rows: int
    foreign: tuple[tuple[str, tuple[str, ...]], ...]
    claims: pa.Table

    @property
    def cost(self) -> float:
        files = sum(len(some) for _, some in self.foreign) + int(self.claims.num_rows)
        return self.rows / _ROWS_A_TASK + files / _FILES_A_TASK


def _cells(ctx: Context, own: Extent, files: pa.Table, claims: pa.Table) -> list[_Cell]:
    buckets = sorted(set(files["partition.bucket"].to_pylist()))
    mine = [files.filter(pc.equal(files["partition.bucket"], bucket)) for bucket in buckets]
    if ctx.pipeline.by_id:  # an id may have come with several times: one task sees all of them
        return _cells_of(ctx, list(zip(buckets, mine, strict=True)), claims, _shards_by_id(ctx, own, files))
    claims, found = data_skipping.within(claims, own), []
    for bucket, some in zip(buckets, mine, strict=True):
        theirs = claims.filter(pc.equal(claims["partition.bucket"], bucket))
        found += _cells_of(ctx, [(bucket, some)], theirs, _split(range(ctx.timeline.most), data_skipping.rows(some)))
    return found


def _cells_of(
    ctx: Context, files: Sequence[tuple[str, pa.Table]], claims: pa.Table, groups: Sequence[tuple[int, ...]]
) -> list[_Cell]:
    """Cells of some buckets' events, one for each group of shards."""
    one_shard, rows = one_shard_each(ctx), sum(data_skipping.rows(some) for _, some in files)
    foreign = tuple((bucket, tuple(data_skipping.paths(some))) for bucket, some in files)
    return [
        _Cell(
            shards, rows, foreign,
            claims.filter(data_skipping.in_shards(claims, shards)) if shards and one_shard else claims,
        )
        for shards in groups
    ]  # fmt: skip


def _shards_by_id(ctx: Context, own: Extent, files: pa.Table) -> list[tuple[int, ...]]:
    """Groups of shards in which all events of an id lie in one: a lone group where an entry parts the batch's times."""
    since, _ = ctx.timeline.steps
    parted = any(own.low and own.high and micros_of(own.low) < at <= micros_of(own.high) for at in since)
    return [()] if parted else _split(range(ctx.timeline.most), data_skipping.rows(files))


def one_shard_each(ctx: Context) -> bool:
    """Whether each claim of the registry, as it was read before, lies in the shard of its id.

    Where ids have no time, only until the lake is first resharded (or a form of the time is added). A batch may have
    begun before that, and its own timeline not say so: this looks again. Anyone who claimed by a later entry had it
    written first, so a look that comes after the registry's sees it.
    """
    return not ctx.pipeline.by_id or ctx.lake.delta.rows("shard_timeline") == 1


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
    return Part(tuple(held for cell in cells for held in cell.foreign), cells[0].shards, as_files(root, claims))
