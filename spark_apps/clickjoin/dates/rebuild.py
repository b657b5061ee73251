"""Recomputing the output of a range with today's adapter: the same ids, one commit, readers see before or after.

Tasks of the kernel read, answer and write. Files of the output are replaced: never is a partition overwritten, for rows
that are published meanwhile are none of its business, and stay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.dates.late_events import context
from clickjoin.joiner import dealing
from clickjoin.joiner.arrow_join import adapter_errors, own_copy
from clickjoin.kernel import data_skipping, rebuild_task
from clickjoin.kernel.adapter import is_users
from clickjoin.kernel.adapter_output import made_of
from clickjoin.kernel.arrays import to_numpy
from clickjoin.kernel.data_file import DataFile
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.rebuild_task import Done, Job, Part
from clickjoin.lake.replace_files import partition_values, replace_files
from clickjoin.model.errors import CommitConflict, LakeError
from clickjoin.model.ids import MICROS, micros_of
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.spark.ship import ship_adapter

if TYPE_CHECKING:
    from clickjoin.batch_context import Context
    from clickjoin.engine import Engine
    from clickjoin.model.span import Span

_REASONS = {
    "foreign": "whose own record was collected (retention.foreign)",
    "primary": "whose primary event was collected (retention.primary)",
    "adapter": "that today's adapter leaves out",
    "doubled": "that are there once more",
}
_REMEDIES = {
    frozenset({"foreign", "primary"}): "Land the logs again (`clickjoin backfill --foreign … --primary …`)",
    frozenset({"adapter"}): "Have the adapter make a row of each of these ids",
    frozenset({"doubled"}): "Take them out with `clickjoin verify --repair --remove-doubles`",
}
_RUNS = 10


def rebuild(engine: Engine, span: Span, micros: int) -> dict[str, int]:
    """Recompute the output of a range; returns `rebuilt`, the number of rows.

    Errors: LakeError where some id could not be rebuilt, ConfigError for an adapter of whole DataFrames, AdapterError,
    CommitConflict; then nothing was changed.
    """
    return {"rebuilt": _by_files(span, context(engine, "rebuild", micros))}


def counted(span: Span, ctx: Context) -> dict[str, int]:
    """How many ids of the output there are (`rows`), and how many cannot be rebuilt, by reason. Changes nothing."""
    return rebuilt(ctx, span, writes=False).counts


def _by_files(span: Span, ctx: Context) -> int:
    for _ in range(_RUNS):
        made = rebuilt(ctx, span, writes=True)
        rows = _all_of(span, made.counts)
        # False: rows of these files were moved, changed or removed meanwhile; what is written is nobody's.
        if not rows or replace_files(ctx.lake, "joined", made.old, made.files):
            return rows
    raise CommitConflict(
        f"{ctx.lake.delta.path('joined')}: its files of {span.low:%Y-%m-%d} were rewritten {_RUNS} times while rows of "
        "theirs were made again; nothing was changed",
        remedy="Look who rewrites them all the time, and rebuild the date after that",
    )


def _all_of(span: Span, counts: dict[str, int]) -> int:
    """The number of ids, all of which can be rebuilt. Errors: LakeError."""
    rows = counts["rows"]
    if gone := {name: count for name, count in counts.items() if count and name != "rows"}:
        why = ", ".join(f"{count} {_REASONS[name]}" for name, count in gone.items())
        raise LakeError(
            f"{span.low:%Y-%m-%d}: of {rows} ids in the output there are {why}; nothing was changed",
            remedy="; ".join(_REMEDIES[name] for name in _REMEDIES if gone.keys() & name),
        )
    return rows


_ROWS_A_PART, _ROWS_A_TASK = 200_000, 40_000
_POINTS = 32  # of each file, where its rows are taken to lie
_COUNTS = ("rows", "foreign", "primary", "adapter", "doubled")


@dataclass(frozen=True)
class Rebuilt:
    """How many rows of a range can be rebuilt, and how many not, by reason; files, and those whose place they take.

    `old`: columns as deltalake's flattened add actions.
    """

    counts: dict[str, int]
    old: pa.Table
    files: Sequence[DataFile]


def rebuilt(ctx: Context, span: Span, *, writes: bool) -> Rebuilt:
    """The adapter's answer for every id of the output. Nothing is committed; `writes`: files are written, and not only
    counted. Errors: AdapterError, LakeError.
    """
    old = data_skipping.within(ctx.lake.delta.files("joined"), span.extent(ctx.bucket_seconds))
    if not old.num_rows:
        return Rebuilt(dict.fromkeys(_COUNTS, 0), old, ())
    with adapter_errors(ctx, "nothing was changed"):
        done = _run(ctx, _job(ctx, span, writes=writes), _dealt(ctx, span, old), old)
    # A file goes with all of its rows, so none may be one that its statistics have hidden from the parts.
    read, there = sum(part.read for part in done), data_skipping.rows(old)
    if read != there and not old["num_records"].null_count:
        raise LakeError(
            f"{ctx.lake.delta.path('joined')}: by its log the files of {span.low:%Y-%m-%d} hold {there} rows, and "
            f"{read} were found there; nothing was changed",
            remedy="Look with `clickjoin verify` what is wrong with them",
        )
    counts = {name: sum(getattr(part, name) for part in done) for name in _COUNTS}
    return Rebuilt(counts, old, [DataFile(*file) for part in done for file in part.files])


def _run(ctx: Context, job: Job, tasks: list[list[Part]], old: pa.Table) -> list[Done]:
    if len(tasks) == 1 and dealing.is_little(ctx, data_skipping.rows(old), old):
        job = job._replace(adapter=own_copy(job.adapter))
        return [rebuild_task.rebuilt(job, part) for part in tasks[0]]
    ship_adapter(type(ctx.adapter))
    numbers = ctx.lake.spark.range(0, len(tasks), 1, len(tasks))
    rows = numbers.mapInArrow(
        checked(rebuild_task.work_of(job, tasks), fresh=is_users(ctx.adapter)), "done STRING"
    ).collect()
    return [Done(*json.loads(row["done"])) for row in rows]


def _job(ctx: Context, span: Span, *, writes: bool) -> Job:
    delta, lookback = ctx.lake.delta, ctx.pipeline.lookback
    adapter = ctx.adapter
    made = made_of(adapter.columns, misfits=adapter.reports_misfits)
    joined = delta.table("joined")
    # What an earlier adapter made and today's does not is no answer of today's adapter: it is in no new file, so null.
    columns = pa.schema([*arrow_schema(joined), *(made.field(name) for name in adapter.columns)])
    landed = data_skipping.within(delta.files("foreign"), span.extent(ctx.bucket_seconds))
    return Job(
        ctx.lake.target(joined, columns), delta.schema("joined"),
        dealing.as_files(delta.path("foreign"), landed),
        dealing.as_files(delta.path("primary"), delta.files("primary")),
        None if lookback is None else round(lookback * MICROS),
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
