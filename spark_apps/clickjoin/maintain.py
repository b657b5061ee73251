"""Housekeeping that changes no row: small files are rewritten into few, and files that nobody reads go."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.events import bucket_at
from clickjoin.lake.upkeep import Heap, heaps, vacuum
from clickjoin.tables import ALL, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clickjoin.config import Pipeline
    from clickjoin.lake import Lake, SmallTables

FEWEST_IN_BUCKET = 4
FEWEST_IN_OPEN = 256  # each batch adds one more, and each look at a table's log costs by the file
FEWEST_IN_TABLE = 50


@dataclass
class Maintained:
    """Files rewritten and files removed, by table; `busy`: buckets left because another writer was in them."""

    rewritten: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    busy: int = 0


def maintain(
    pipeline: Pipeline, lake: Lake, now: datetime, say: Callable[[str], None], crowd: int = FEWEST_IN_OPEN
) -> Maintained:
    """Rewrite and vacuum every table of a pipeline. Safe beside joins.

    `crowd`: files of a partition from which on a bucket that is still open is rewritten. A claim that a rewriting came
    before looks once more; a MERGE is run once more.
    """
    done = Maintained()
    for table in ALL:
        if not lake.small.exists(table.name):
            continue
        results = [lake.rewrite(table.name, bucket) for bucket in _due(pipeline, lake.small, table, now, crowd)]
        files = done.rewritten[table.name] = sum(result or 0 for result in results)
        done.busy += results.count(None)
        done.removed[table.name] = vacuum(lake.small, table.name, pipeline.keep.files / 3600, dry_run=False)
        if files or done.removed[table.name]:
            say(f"{table.name}: {files} files rewritten, {done.removed[table.name]} files removed")
    return done


def _due(pipeline: Pipeline, small: SmallTables, table: Table, now: datetime, crowd: int) -> Sequence[str | None]:
    """Buckets to rewrite; one None for a table without buckets that has many files."""
    found = heaps(small, table.name)
    if "bucket" not in table.partitions:
        return [None] if sum(heap.files for heap in found) >= FEWEST_IN_TABLE else []
    open_from = first_open(pipeline, now)
    return sorted({
        heap.bucket
        for heap in found
        if heap.bucket and (heap.files >= crowd or (heap.bucket < open_from and _is_worth_it(heap)))
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
