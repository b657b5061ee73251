"""The output of a range made again through the kernel: tasks read, answer and write, and one commit swaps the files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.engines.adapter_errors import adapter_errors
from clickjoin.engines.arrow import dealing
from clickjoin.engines.arrow.joining import arrow_adapter, own_copy
from clickjoin.engines.arrow.replace_files import partition_values, replace_files
from clickjoin.engines.port import Rebuilt
from clickjoin.kernel import data_skipping, rebuild_task
from clickjoin.kernel.adapter import is_users, made_of
from clickjoin.kernel.arrays import to_numpy
from clickjoin.kernel.data_file import DataFile
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.rebuild_task import Done, Job, Part
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import MICROS, micros_of
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.spark.ship import ship_adapter

if TYPE_CHECKING:
    from clickjoin.engines.arrow.lake import ArrowLake
    from clickjoin.engines.context import Context
    from clickjoin.model.span import Span

_ROWS_A_PART, _ROWS_A_TASK = 200_000, 40_000
_POINTS = 32  # of each file, where its rows are taken to lie
_COUNTS = ("rows", "foreign", "primary", "adapter", "doubled")


@dataclass(frozen=True)
class _Files:
    """Files that were made, and those whose place they take (columns as deltalake's flattened add actions)."""

    old: pa.Table
    new: Sequence[DataFile]


def rebuilt(lake: ArrowLake, ctx: Context, span: Span, *, writes: bool) -> Rebuilt:
    """See Lake.rebuilt."""
    old = data_skipping.within(ctx.lake.delta.files("joined"), span.extent(ctx.bucket_seconds))
    if not old.num_rows:
        return Rebuilt(dict.fromkeys(_COUNTS, 0), _Files(old, ()))
    with adapter_errors(ctx, "nothing was changed"):
        done = _run(lake, ctx, _job(lake, ctx, span, writes=writes), _dealt(ctx, span, old), old)
    # A file goes with all of its rows, so none may be one that its statistics have hidden from the parts.
    read, there = sum(part.read for part in done), data_skipping.rows(old)
    if read != there and not old["num_records"].null_count:
        raise LakeError(
            f"{ctx.lake.delta.path('joined')}: by its log the files of {span.low:%Y-%m-%d} hold {there} rows, and "
            f"{read} were found there; nothing was changed",
            remedy="Look with `clickjoin verify` what is wrong with them",
        )
    counts = {name: sum(getattr(part, name) for part in done) for name in _COUNTS}
    return Rebuilt(counts, _Files(old, [DataFile(*file) for part in done for file in part.files]))


def replace_output(lake: ArrowLake, made: Rebuilt) -> bool:
    """See Lake.replace_output."""
    return replace_files(lake, "joined", made.rows.old, made.rows.new)


def _run(lake: ArrowLake, ctx: Context, job: Job, tasks: list[list[Part]], old: pa.Table) -> list[Done]:
    if len(tasks) == 1 and dealing.is_little(ctx, data_skipping.rows(old), old):
        job = job._replace(adapter=own_copy(job.adapter))
        return [rebuild_task.rebuilt(job, part) for part in tasks[0]]
    ship_adapter(type(ctx.adapter))
    numbers = lake.spark.range(0, len(tasks), 1, len(tasks))
    rows = numbers.mapInArrow(
        checked(rebuild_task.work_of(job, tasks), fresh=is_users(ctx.adapter)), "done STRING"
    ).collect()
    return [Done(*json.loads(row["done"])) for row in rows]


def _job(lake: ArrowLake, ctx: Context, span: Span, *, writes: bool) -> Job:
    delta = lake.delta
    adapter = arrow_adapter(ctx)
    made = made_of(adapter.columns, misfits=adapter.reports_misfits)
    joined = delta.table("joined")
    # What an earlier adapter made and today's does not is no answer of today's adapter: it is in no new file, so null.
    columns = pa.schema([*arrow_schema(joined), *(made.field(name) for name in adapter.columns)])
    landed = data_skipping.within(delta.files("foreign"), span.extent(ctx.bucket_seconds))
    return Job(
        lake.target(joined, columns), delta.schema("joined"),
        dealing.as_files(delta.path("foreign"), landed),
        dealing.as_files(delta.path("primary"), delta.files("primary")),
        ctx.pipeline.around,
        adapter, made, ctx.pipeline.stream is not None, writes,
    )  # fmt: skip


def _dealt(ctx: Context, span: Span, old: pa.Table) -> list[list[Part]]:
    """The parts of each task: stretches of event time that hold about as many rows, and together all rows there are."""
    rows, low, high = data_skipping.rows(old), micros_of(span.low), micros_of(span.high)
    tasks = max(1, min(ctx.pipeline.batch.parallelism, rows // _ROWS_A_TASK))
    each = -(-rows // (tasks * _ROWS_A_PART))
    cuts = _cuts(old, (low, high), tasks * max(each, 1), ctx.bucket_seconds * MICROS)
    made = [_part(ctx, old, *stretch) for stretch in pairwise([low, *cuts, high])]
    beside = [
        _part(ctx, old, *stretch, copied=True) for stretch in ((-data_skipping.EVER, low), (high, data_skipping.EVER))
    ]
    parts = [part for part in (*made, *beside) if part.files]
    return [parts[len(parts) * n // tasks : len(parts) * (n + 1) // tasks] for n in range(tasks)]


def _cuts(files: pa.Table, within: tuple[int, int], count: int, bucket: int) -> list[int]:
    """Times that divide the rows of some files into `count` about equal parts: ends of buckets where these do."""
    ends = data_skipping.ends(files)
    low, high = (np.clip(end, *within) for end in ends)
    points = np.linspace(low, high, _POINTS).T.ravel()
    order = np.argsort(points)
    weights = np.repeat(to_numpy(pc.fill_null(files["num_records"].cast(pa.int64()), 1)), _POINTS)[order]
    shares = np.cumsum(weights) / max(weights.sum(), 1)
    found, last = [], within[0]
    for number in range(1, count):
        at = int(points[order][np.searchsorted(shares, number / count)])
        at = whole if (whole := at // bucket * bucket) > last else at
        if last < at < within[1]:
            found.append(at)
            last = at
    return found


def _part(ctx: Context, files: pa.Table, low: int, high: int, *, copied: bool = False) -> Part:
    names = ctx.lake.delta.table("joined").partitions
    some = files.filter(data_skipping.overlapping(files, low, high))
    return Part(tuple((row["path"], partition_values(row, names)) for row in some.to_pylist()), low, high, copied)
