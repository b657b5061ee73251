"""Joining by Arrow: a batch's buckets are dealt out to tasks, which screen, look up, adapt and write.

What one task would do in a moment this process does itself. Nothing is committed: what was written becomes real with
the claim.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from clickjoin.engines.adapter_errors import adapter_errors
from clickjoin.engines.arrow import dealing
from clickjoin.engines.port import JoinInput, Outcome, Tally
from clickjoin.kernel import data_skipping, join_task, retry_task
from clickjoin.kernel.adapter import Adapter, ArrowAdapter, is_users, made_of
from clickjoin.kernel.data_file import DataFile
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.resolving import Job, left_schema
from clickjoin.kernel.waiting import TRIED, Tries
from clickjoin.model.extent import Extent
from clickjoin.model.ids import MICROS, moment
from clickjoin.schemas import EXPIRED, FILTERED, FOREIGN, PENDING, REGISTRY, UNJOINABLE
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.spark.ship import ship_adapter

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from clickjoin.engines.arrow.lake import ArrowLake
    from clickjoin.engines.context import Context
    from clickjoin.kernel.types import RecordFn

_STATE = ("state", "outcome", "due_at", "sequence", "batch", "replica")
_WAITING = replace(PENDING, columns=tuple(column for column in PENDING.columns if column.name not in _STATE))
# Where a record was is no column of any table that a batch's events go to.
_LANDED = replace(FOREIGN, columns=tuple(column for column in FOREIGN.columns if column.name not in ("path", "length")))
_TRIED = ", ".join(f"{column.name} {column.type}" for column in PENDING.columns if column.name in TRIED.names)
_RESULT = f"{_LANDED.ddl}, {_TRIED}, status STRING, done STRING"
_RESULT_OF_RETRY = f"{_WAITING.ddl}, status STRING, done STRING"


@dataclass(frozen=True)
class Resolved:
    """What tasks have written of a batch's events: files by table, in no table yet.

    `checked_against`: paths of the registry's files that the events were screened by. `left`: the events that wait or
    are expired, with column `status`.
    """

    files: Mapping[str, Sequence[DataFile]]
    checked_against: pa.ChunkedArray
    left: Callable[[], pa.Table]

    def of(self, table: str) -> Sequence[DataFile]:
        """What was written for a table."""
        return self.files.get(table, ())


# What parts have reported, and what reads the events that wait or are expired.
_Done = tuple[list[dict[str, Any]], Callable[[], pa.Table]]


def resolve(lake: ArrowLake, ctx: Context, work: JoinInput, *, fixed: bool) -> Outcome:
    """See Lake.resolve."""
    claims = lake.delta.files("registry")
    job = _job(lake, ctx, work, fixed=fixed)
    with adapter_errors(ctx):
        done, left = (_new_records if ctx.plan.table is None else _retried)(lake, ctx, work, job, claims)
    tallies = _tallies(done)
    ctx.counts["false_positives"] = sum(part["false_positives"] for part in done)
    dropped = sum(part.get("dropped", 0) for part in done)
    absent = tallies["unjoinable"].absent if "unjoinable" in tallies else 0
    rows = Resolved(_files(done), claims["path"], left)
    return Outcome(tallies, rows, fixed, dropped, _misfits(done), absent)


def _new_records(lake: ArrowLake, ctx: Context, work: JoinInput, job: Job, claims: pa.Table) -> _Done:
    files = dealing.landed(ctx, work.own)
    tasks = dealing.new_records(ctx, work.own, files, claims)
    if len(tasks) == 1 and dealing.is_little(ctx, work.own.rows, files):
        return _here(job, lambda own: [some for part in tasks[0] for some in join_task.resolve_part(own, part)])
    numbers = lake.spark.range(0, len(tasks), 1, len(tasks))
    return _by_tasks(ctx, numbers, join_task.work_of(job, tasks), job, _RESULT)


def _retried(lake: ArrowLake, ctx: Context, work: JoinInput, job: Job, claims: pa.Table) -> _Done:
    if work.due is None or work.records is None:
        raise ValueError("a retry batch without the events that it takes up")
    # In any shard: the lake may have been resharded since an event first came.
    claims = claims if ctx.pipeline.by_id else data_skipping.within(claims, work.own)
    held = dealing.as_files(lake.delta.path("registry"), claims)
    bare = pa.nulls(work.due.num_rows, pa.string())
    due = work.due.append_column("payload", bare).select(job.columns.names).cast(job.columns)
    records = dealing.as_files(lake.delta.path("pending"), work.records)
    if dealing.is_little(ctx, work.own.rows, work.records):
        return _here(job, lambda own: retry_task.resolve_waiting(own, held, records, due))
    rows = dealing.waiting(ctx, lake.spark.createDataFrame(due), work.own.rows)
    return _by_tasks(ctx, rows, retry_task.work_of(job, held, records), job, _RESULT_OF_RETRY)


def _here(job: Job, resolve: Callable[[Job], Sequence[tuple[dict[str, Any], pa.Table]]]) -> _Done:
    """With an adapter of its own for each batch, as a task has it."""
    found = resolve(job._replace(adapter=own_copy(job.adapter)))
    left = pa.concat_tables([rows for _, rows in found])
    return [done for done, _ in found], lambda: left


def arrow_adapter(ctx: Context) -> ArrowAdapter:
    """The adapter, of the only kind that this engine takes (choose.require_adapter)."""
    return cast("ArrowAdapter", ctx.adapter)


def own_copy(adapter: ArrowAdapter) -> ArrowAdapter:
    """A copy of an adapter, whatever it holds that can travel to a task, such as a module that it has imported."""
    try:
        return deepcopy(adapter)
    except TypeError:
        from pyspark.cloudpickle import dumps, loads

        copy: ArrowAdapter = loads(dumps(adapter))
        return copy


def _by_tasks(ctx: Context, rows: DataFrame, work: RecordFn, job: Job, ddl: str) -> _Done:
    ship_adapter(type(ctx.adapter))
    found = rows.mapInArrow(checked(work, fresh=is_users(ctx.adapter)), ddl).localCheckpoint(eager=False)
    done = [json.loads(row["done"]) for row in found.where("done IS NOT NULL").select("done").collect()]

    def left() -> pa.Table:
        held: Any = found.where("done IS NULL").drop("done").toArrow()
        return held.cast(left_schema(job.columns))

    return done, left


def warm_up(spark: SparkSession, adapter: Adapter) -> None:
    """Run a task of no events, so that a new session and its Python worker have loaded what those of a batch need.

    One task: on two cores another process's batch has the other core meanwhile.
    """
    ship_adapter(type(adapter))
    no_job = cast("Job", None)  # no part asks for it
    each = checked(join_task.work_of(no_job, [[]]))
    rows = spark.range(0, 1, 1, 1).mapInArrow(each, _RESULT).localCheckpoint(eager=False)
    rows.where("done IS NOT NULL").select("done").collect()


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


def _job(lake: ArrowLake, ctx: Context, work: JoinInput, *, fixed: bool) -> Job:
    plan, adapter = ctx.plan, arrow_adapter(ctx)
    primaries = data_skipping.within(lake.delta.files("primary"), work.named)
    made = made_of(adapter.columns, misfits=adapter.reports_misfits)
    joined = lake.delta.table("joined")
    output = pa.schema([*arrow_schema(joined), *(made.field(name) for name in adapter.columns)])
    targets = {
        "registry": lake.target(REGISTRY),
        "joined": lake.target(joined, output),
    } | {table.name: lake.target(table) for table in (FILTERED, PENDING, UNJOINABLE, EXPIRED)}
    return Job(
        plan.number, plan.replica, plan.sequence, plan.token,
        {shard: _micros(at) for shard, at in ctx.boundary.items()},
        None if ctx.floor is None else _micros(ctx.floor),
        ctx.pipeline.around,
        lake.delta.path("foreign"), arrow_schema(_WAITING if plan.table else _LANDED),
        dealing.as_files(lake.delta.path("primary"), primaries), targets, adapter, made,
        _tries(ctx), ctx.pipeline.stream is not None, ctx.pipeline.by_id, fixed,
        ctx.pipeline.match is not None and lake.delta.rows("forgotten") > 0,
    )  # fmt: skip


def _tries(ctx: Context) -> Tries:
    retry, part = ctx.pipeline.retry, ctx.plan.table
    rules = Tries(
        ctx.plan.planned, ctx.pipeline.first_delay, retry.backoff, retry.max_delay, passed=ctx.passed,
        decides=ctx.pipeline.match is not None,
    )  # fmt: skip
    if part is None:
        return rules
    return rules._replace(again=True, most=retry.max_attempts, oldest=_micros(ctx.waits_since))


def _tally(parts: Iterable[dict[str, Any]]) -> Tally:
    held = [part for part in parts if part["rows"]]
    if not held:
        return Tally(Extent(0), ())
    extent = Extent(
        sum(part["rows"] for part in held), tuple(sorted({name for part in held for name in part["buckets"]})),
        moment(min(part["low"] for part in held)), moment(max(part["high"] for part in held)),
    )  # fmt: skip
    return Tally(extent, _exceeded(held), sum(part.get("absent", 0) for part in held))


def _exceeded(held: Sequence[dict[str, Any]]) -> tuple[int, ...]:
    """Quantiles p50, p10, p01 of event times, from some points of each part."""
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
