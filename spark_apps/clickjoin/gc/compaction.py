"""Housekeeping that changes no row: small files are rewritten into few, and files that nobody needs go."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.dispatcher.unsettled import unsettled
from clickjoin.gc.behind import NOT_BEHIND, Behind, processing_behind
from clickjoin.kernel.parquet_rows import MATCH_KEY
from clickjoin.lake import clock
from clickjoin.lake.maintenance import Heap, heaps, one_ended
from clickjoin.lake.vacuum import Needed, clean_log, remove_filters, vacuum
from clickjoin.model.ids import bucket_at, claims_order
from clickjoin.model.reporter import Reporter
from clickjoin.schemas import ALL, JOINED, PRIMARY, REGISTRY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickjoin.config import Pipeline
    from clickjoin.engines.port import Lake
    from clickjoin.engines.tables_port import Tables
    from clickjoin.model.batch_plan import BatchPlan

FEWEST_IN_BUCKET = 4
FEWEST_IN_OPEN = 256  # each batch adds one more, and each look at a table's log costs by the file
FEWEST_IN_TABLE = 50


@dataclass
class Maintained:
    """Files rewritten and files removed, by table; `busy`: buckets or dates left because another writer was in them.

    `repaired`: files rewritten since the statistics of one lacked an end of a column, by which readers found no row of
    it; of tables that had one.
    """

    rewritten: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    busy: int = 0


def maintain(
    pipeline: Pipeline, lake: Lake, now: datetime, report_line: Reporter, crowd: int = FEWEST_IN_OPEN
) -> Maintained:
    """Rewrite the tables of a pipeline where that is worth it. Safe beside joins.

    `crowd`: files of a partition from which on a bucket that is still open is rewritten. Claims, and changes of
    rows, that a rewriting came before look once more.
    """
    done = Maintained()
    for table in ALL:
        if not lake.delta.exists(table.name):
            continue
        order = MATCH_KEY if pipeline.match and table is PRIMARY else claims_order(by_id=pipeline.by_id)
        places = _due(pipeline, heaps(lake.delta, table.name, order), now, crowd)
        results = [lake.rewrite(table.name, place, order) for place in places]
        files = done.rewritten[table.name] = sum(result or 0 for result in results)
        done.busy += results.count(None)
        if files:
            report_line(f"{table.name}: {files} files rewritten")
        _repair(lake, table.name, order, done, report_line)
    return done


def _repair(lake: Lake, name: str, order: str, done: Maintained, report_line: Reporter) -> None:
    places = one_ended(lake.delta, name)
    results = [lake.rewrite(name, place, order, whole=True) for place in places]
    done.busy += results.count(None)
    if files := sum(result or 0 for result in results):
        done.repaired[name] = files
        report_line(f"{name}: {files} files rewritten, whose statistics lacked an end of a column")


def clean(pipeline: Pipeline, delta: Tables, report_line: Reporter) -> dict[str, int]:
    """Remove files that nobody needs, and old logs; returns data files removed by table. Safe beside joins.

    Errors: ClockError where this process's clock and the lake's disagree by more than skew_bound; nothing is removed.
    """
    reading = clock.read(pipeline.root)
    reading.require(skew_bound(pipeline))
    # Before any table is read: a batch that settles later is in its log by then, and one planned later is young.
    plans = unsettled(delta, pipeline)
    _say_held(pipeline, plans, reading.sure, report_line)
    behind = processing_behind(pipeline)
    _say_behind(pipeline, delta, behind, reading.sure, report_line)
    removed: dict[str, int] = {}
    for name in (table.name for table in ALL if delta.exists(table.name)):
        needed = needs(pipeline, name, plans, reading.sure, behind)
        removed[name] = len(vacuum(delta, name, needed))
        clean_log(delta, name, reading.sure, needed)
        if pipeline.by_id and name == REGISTRY.name:
            remove_filters(delta.path(name))
        if removed[name]:
            report_line(f"{name}: {removed[name]} files removed")
    return removed


def _say_held(pipeline: Pipeline, plans: Sequence[BatchPlan], now: float, report_line: Reporter) -> None:
    for plan in plans[:1]:
        if now - plan.planned_at.timestamp() > pipeline.retention.files:
            report_line(
                f"{plan.token}, planned at {plan.planned_at}, is not settled: what it may have written since then stays"
            )


def _say_behind(pipeline: Pipeline, delta: Tables, behind: Behind, now: float, report_line: Reporter) -> None:
    if now - pipeline.retention.files > behind.since and delta.open(JOINED.name).version() > behind.read:
        since = datetime.fromtimestamp(behind.since, UTC)
        report_line(
            f"files that the output has had since {since:%Y-%m-%d %H:%M} UTC stay: `process` has come no further; run "
            "it, or remove section process"
        )


def skew_bound(pipeline: Pipeline) -> float:
    """Seconds that clocks may disagree by: limits.max_skew, but a minute at least and half an hour at most."""
    return min(max(pipeline.limits.max_skew, 60.0), 1800.0)


def needs(pipeline: Pipeline, name: str, plans: Sequence[BatchPlan], now: float, behind: Behind = NOT_BEHIND) -> Needed:
    """What has to stay of a table: what retention.files says, what batches under way name or have written, and of the
    output what processing has not read.
    """
    named = [plan.table.versions.get(name) for plan in plans if plan.table]
    written = min((plan.planned_at.timestamp() - skew_bound(pipeline) for plan in plans), default=float("inf"))
    behind = behind if name == JOINED.name else NOT_BEHIND
    versions = [*behind.versions, *(version for version in named if version is not None)]
    return Needed(min(now - pipeline.retention.files, behind.since), tuple(versions), written)


def _due(pipeline: Pipeline, found: Sequence[Heap], now: datetime, crowd: int) -> Sequence[str | None]:
    """Buckets or dates of a table to rewrite; one None for a table that has neither, and many files."""
    if not any(heap.place for heap in found):
        return [None] if sum(heap.files for heap in found) >= FEWEST_IN_TABLE else []
    open_from = first_open(pipeline, now)  # of a date that it lies in, the first ten letters
    return sorted({
        heap.place
        for heap in found
        if heap.place and (heap.files >= crowd or (heap.place < open_from[: len(heap.place)] and _is_worth_it(heap)))
    })  # fmt: skip


def _is_worth_it(heap: Heap) -> bool:
    """Whether a closed partition's new files hold a quarter of its bytes: a late row has not all of them written again.

    So a row is written a few times in all, however often retries add to its bucket.
    """
    return heap.files >= FEWEST_IN_BUCKET and heap.largest * 4 <= heap.bytes * 3


def first_open(pipeline: Pipeline, now: datetime) -> str:
    """The oldest bucket that fresh events may go to. A retry may go to older ones: it then commits once more."""
    width = int(pipeline.registry.bucket)
    return bucket_at(now - timedelta(seconds=width + pipeline.limits.max_skew + pipeline.retry.first_delay), width)
