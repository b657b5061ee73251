"""Housekeeping that changes no row: closed buckets are rewritten into few files, and files that nobody reads go."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.events import MICROS, bucket_of
from clickjoin.lake.upkeep import compact, sizes, vacuum
from clickjoin.tables import ALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickjoin.config import Pipeline
    from clickjoin.lake import SmallTables

FEWEST_IN_BUCKET = 4
FEWEST_IN_TABLE = 50


@dataclass
class Maintained:
    """Files rewritten and files removed, by table; `busy`: partitions left because another writer was in them."""

    rewritten: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    busy: int = 0


def maintain(pipeline: Pipeline, small: SmallTables, now: datetime, say: Callable[[str], None]) -> Maintained:
    """Rewrite and vacuum every table of a pipeline. Safe beside joins: a bucket is rewritten once it is closed."""
    done = Maintained()
    for table in ALL:
        if not small.exists(table.name):
            continue
        bucketed = "bucket" in table.partitions
        buckets = closed(pipeline, small, table.name, now) if bucketed else None
        files, busy = compact(small, table.name, FEWEST_IN_BUCKET if bucketed else FEWEST_IN_TABLE, buckets)
        done.rewritten[table.name] = files
        done.busy += busy
        done.removed[table.name] = vacuum(small, table.name, pipeline.keep.files / 3600, dry_run=False)
        if files or done.removed[table.name]:
            say(f"{table.name}: {files} files rewritten, {done.removed[table.name]} files removed")
    return done


def closed(pipeline: Pipeline, small: SmallTables, name: str, now: datetime) -> list[str]:
    """Buckets that fresh events no longer go to. A retry may: it then commits once more."""
    width = int(pipeline.registry.bucket)
    end = now - timedelta(seconds=width + pipeline.limits.max_skew + pipeline.retry.first_delay)
    open_from = bucket_of(int(end.timestamp() * MICROS), width)
    return sorted(bucket for bucket in sizes(small, name) if bucket < open_from)
