"""Which files of a table can hold rows of an extent: decided from the log's statistics, in this process.

Spark's own way loads a new snapshot and runs a job for each table of each batch, a quarter of a second a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, to_numpy
from clickjoin.model.extent import MINUTE

if TYPE_CHECKING:
    from clickjoin.model.extent import Extent

_TRUNCATED = timedelta(milliseconds=1)  # a log keeps only the milliseconds of a time's minimum and maximum
_SLACK = _TRUNCATED // timedelta(microseconds=1)
EVER = 1 << 60


class Ends(NamedTuple):
    """Least and greatest event times of some files, in microseconds."""

    least: np.ndarray[Any, Any]
    most: np.ndarray[Any, Any]


def within(
    actions: pa.Table, extent: Extent, batch: int | None = None, shards: Iterable[int] | None = None
) -> pa.Table:
    """The files that can hold rows of an extent (and of one batch, and of some shards).

    Columns in and out: those of deltalake's flattened add actions. A file without statistics always matches.
    """
    if not extent.rows or not actions.num_rows:
        return actions.slice(0, 0)
    if _has(actions, "partition.bucket"):  # first, by itself: few files are left of a long history
        actions = actions.filter(_in_buckets(actions, extent))
    keep = _in_dates(actions, extent) if _has(actions, "partition.event_date") else None
    if shards is not None and _has(actions, "partition.shard"):
        keep = _both(keep, in_shards(actions, shards))
    if extent.low is not None and extent.high is not None:
        keep = _both(keep, _overlaps(actions, "event_time", extent.low - _TRUNCATED, extent.high + _TRUNCATED))
    if extent.minutes:
        keep = _both(keep, _near(actions, np.array(extent.minutes, np.int64) * MINUTE, MINUTE))
    if batch is not None:
        keep = _both(keep, _overlaps(actions, "batch", batch, batch))
    return actions if keep is None else actions.filter(keep)


def at_times(actions: pa.Table, times: np.ndarray[Any, Any]) -> pa.Table:
    """The files that can hold one of some sorted event times, in microseconds."""
    return actions.filter(_near(actions, times, 0)) if len(times) and actions.num_rows else actions.slice(0, 0)


def paths(files: pa.Table) -> list[str]:
    """Where files lie, below their table's folder."""
    return [str(path) for path in files["path"].to_pylist()]


def rows(files: pa.Table) -> int:
    """Rows of files, by the log's statistics."""
    return int(pc.sum(files["num_records"]).as_py() or 0)


def matching(
    actions: pa.Table, extent: Extent, batch: int | None = None, shards: Iterable[int] | None = None
) -> list[str]:
    """Paths of the files that `within` finds."""
    return paths(within(actions, extent, batch, shards))


def rows_in(actions: pa.Table, extent: Extent) -> int:
    """Rows of the files that can hold rows of an extent: exact for whole buckets of a table that they partition."""
    return rows(within(actions, extent))


def _near(actions: pa.Table, starts: np.ndarray[Any, Any], length: int) -> pa.Array:
    return bool_array(near(ends(actions), starts, length))


def ends(actions: pa.Table) -> Ends:
    """Least and greatest event time of each file, in microseconds; of one without statistics the widest there is."""
    if not (_has(actions, "min.event_time") and _has(actions, "max.event_time")):
        unknown = np.zeros(actions.num_rows, np.int64)
        return Ends(unknown - EVER, unknown + EVER)
    low, high = (_micros(actions[f"{end}.event_time"]) for end in ("min", "max"))
    return Ends(to_numpy(pc.fill_null(low, -EVER)), to_numpy(pc.fill_null(high, EVER)))


def near(files: Ends, starts: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    """Which files can hold a time of one of these stretches: sorted starts and one length, in microseconds."""
    # The first stretch that does not end before the file begins.
    first = np.searchsorted(starts, files.least - _SLACK - length)
    inside: np.ndarray[Any, Any] = starts[np.minimum(first, len(starts) - 1)] <= files.most + _SLACK
    return inside & (first < len(starts))


def overlapping(actions: pa.Table, low: int, high: int) -> pa.Array:
    """Which files can hold a time from one on to before another, microseconds."""
    found = ends(actions)
    return bool_array((found.least - _SLACK < high) & (found.most + _SLACK >= low))


def between(starts: np.ndarray[Any, Any], least: int, most: int) -> np.ndarray[Any, Any]:
    """Those of some sorted times that a file of such ends can hold, in microseconds."""
    low, high = np.searchsorted(starts, [least - _SLACK, most + _SLACK + 1])
    return starts[low:high]


def _micros(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def in_shards(actions: pa.Table, shards: Iterable[int]) -> pa.Array:
    """Which files are of one of some shards."""
    held = actions["partition.shard"]
    return pc.is_in(held, pa.array(sorted(shards)).cast(held.type))


def _in_buckets(actions: pa.Table, extent: Extent) -> pa.Array:
    buckets = actions["partition.bucket"]
    if extent.wide:
        return pc.and_(pc.greater_equal(buckets, min(extent.buckets)), pc.less_equal(buckets, max(extent.buckets)))
    return pc.is_in(buckets, pa.array(sorted(extent.buckets)))


def _in_dates(actions: pa.Table, extent: Extent) -> pa.Array:
    files, dates = actions["partition.event_date"], extent.dates
    if extent.wide:
        return pc.and_(pc.greater_equal(files, dates[0]), pc.less_equal(files, dates[-1]))
    return pc.is_in(files, pa.array(dates, files.type))


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
