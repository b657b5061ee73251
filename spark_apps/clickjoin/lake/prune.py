"""Which files of a table can hold rows of an extent: decided from the log's statistics, in this process.

Spark's own way loads a new snapshot and runs a job for each table of each batch, a quarter of a second a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.lake.extent import MINUTE

if TYPE_CHECKING:
    from clickjoin.lake.extent import Extent

_TRUNCATED = timedelta(milliseconds=1)  # a log keeps only the milliseconds of a time's minimum and maximum


def matching(
    actions: pa.Table, extent: Extent, batch: int | None = None, shards: Iterable[int] | None = None
) -> list[str]:
    """Paths of files that can hold rows of an extent (and of one batch, and of some shards).

    Columns in: those of deltalake's flattened add actions. A file without statistics always matches.
    """
    if not extent.rows or not actions.num_rows:
        return []
    keep = _in_buckets(actions, extent) if _has(actions, "partition.bucket") else None
    if shards is not None and _has(actions, "partition.shard"):
        keep = _both(
            keep, pc.is_in(actions["partition.shard"], pa.array(sorted(shards), actions["partition.shard"].type))
        )
    if extent.low is not None and extent.high is not None:
        keep = _both(keep, _overlaps(actions, "event_time", extent.low - _TRUNCATED, extent.high + _TRUNCATED))
    if extent.minutes:
        starts = np.sort(np.array(extent.minutes, np.int64)) * MINUTE
        keep = _both(keep, _near(actions, starts, MINUTE))
    if batch is not None:
        keep = _both(keep, _overlaps(actions, "batch", batch, batch))
    found = actions if keep is None else actions.filter(keep)
    return [str(path) for path in found["path"].to_pylist()]


def holding(actions: pa.Table, rows: pa.Table) -> list[str]:
    """Paths of registry files that can hold a claim of one of these ids: by bucket, shard, and each event's own time.

    One late event among many does not make a batch read all files of the hours between. Columns in: actions as for
    `matching`; bucket, shard, event_time.
    """
    if not actions.num_rows or not rows.num_rows:
        return []
    keep = pc.and_(
        pc.is_in(actions["partition.bucket"], pc.unique(rows["bucket"])),
        pc.is_in(actions["partition.shard"], pc.unique(rows["shard"]).cast(actions["partition.shard"].type)),
    )
    near = actions.filter(keep)
    times = rows["event_time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    return [str(path) for path in near.filter(_near(near, np.sort(times), 0))["path"].to_pylist()]


def _near(actions: pa.Table, starts: np.ndarray[Any, Any], length: int) -> pa.Array:
    """Which files can hold a time of one of these stretches: sorted starts and one length, in microseconds."""
    if not (_has(actions, "min.event_time") and _has(actions, "max.event_time")):
        return pa.array(np.ones(actions.num_rows, np.bool_))
    kind, slack = pa.timestamp("us", "UTC"), int(_TRUNCATED / timedelta(microseconds=1))
    least, most = (
        pc.fill_null(actions[name].cast(kind).cast(pa.int64()), unknown).to_numpy()
        for name, unknown in (("min.event_time", int(starts[0])), ("max.event_time", int(starts[-1]) + length))
    )
    first = np.searchsorted(
        starts, least - slack - length
    )  # the first stretch that does not end before the file begins
    inside = starts[np.minimum(first, len(starts) - 1)] <= most + slack
    return pa.array(inside & (first < len(starts)))


def rows_in(actions: pa.Table, extent: Extent) -> int:
    """Rows of the files that can hold rows of an extent: exact for whole buckets of a table that they partition."""
    held = set(matching(actions, extent))
    if not held:
        return 0
    counts = zip(actions["path"].to_pylist(), actions["num_records"].to_pylist(), strict=True)
    return sum(count or 0 for path, count in counts if path in held)


def _in_buckets(actions: pa.Table, extent: Extent) -> pa.Array:
    buckets = actions["partition.bucket"]
    if extent.wide:
        return pc.and_(pc.greater_equal(buckets, min(extent.buckets)), pc.less_equal(buckets, max(extent.buckets)))
    return pc.is_in(buckets, pa.array(sorted(extent.buckets)))


def _has(actions: pa.Table, name: str) -> bool:
    return name in actions.schema.names


def _both(left: pa.Array | None, right: pa.Array | None) -> pa.Array | None:
    if left is None or right is None:
        return right if left is None else left
    return pc.and_(left, right)


def _overlaps(actions: pa.Table, column: str, low: object, high: object) -> pa.Array | None:
    least, most = f"min.{column}", f"max.{column}"
    if not (_has(actions, least) and _has(actions, most)):
        return None
    kind = actions[least].type
    inside = pc.and_(
        pc.less_equal(actions[least], pa.scalar(high, kind)), pc.greater_equal(actions[most], pa.scalar(low, kind))
    )
    return pc.fill_null(inside, True)
