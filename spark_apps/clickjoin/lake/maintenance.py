"""Dropping and rewriting what tables no longer need, through their logs alone: no row is read where none has to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import CommitFailedError

from clickjoin.lake.committer import rewritten
from clickjoin.model.errors import LakeError

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.schemas import Table
from clickjoin.lake.delta_tables import DeltaTables

LARGE = 32 << 20  # bytes of a file that is left as it is: old rows are not written again for the sake of a few new ones
# Of the output, which is for readers of its own: files that are rewritten, and what they are made to, in bytes. Two of
# the former fit into one of the latter, so that whatever is due to be rewritten can be.
LARGE_OUTPUT, OUTPUT_FILE = 64 << 20, 128 << 20
_ANY_FILE = 1 << 30
SORTED = "registry"  # its partitions are sorted again as a whole
_RACES = 10


@dataclass(frozen=True)
class Size:
    """What some files hold."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.files + other.files, self.rows + other.rows, self.bytes + other.bytes)


def sizes(delta: DeltaReader, name: str, by: str = "bucket") -> dict[str, Size]:
    """Files, rows and bytes of a table by one of its partition columns, from the log alone."""
    return _sizes(delta.files(name), by)


def _sizes(actions: pa.Table, by: str) -> dict[str, Size]:
    if not actions.num_rows:
        return {}
    groups = actions.group_by(f"partition.{by}").aggregate(
        [("path", "count"), ("num_records", "sum"), ("size_bytes", "sum")]
    )
    return {
        str(row[f"partition.{by}"]): Size(row["path_count"], row["num_records_sum"] or 0, row["size_bytes_sum"] or 0)
        for row in groups.to_pylist()
    }


def newest(delta: DeltaReader, name: str) -> datetime | None:
    """The latest event time of a table's rows, from the log alone."""
    actions = delta.files(name)
    times = actions["max.event_time"].to_pylist() if actions.num_rows else []
    return max((time for time in times if time), default=None)


def drop_buckets(
    delta: DeltaTables, name: str, before: str, under_way: Callable[[], Iterable[int]] | None = None
) -> Size:
    """Drop all partitions whose bucket sorts before one: a metadata-only commit. Returns what was dropped.

    `under_way`: numbers of batches whose rows are still to be read, asked after the table's version was fixed: from the
    oldest bucket that may hold such rows on, everything stays.
    """
    for _ in range(_RACES):
        table = delta.open(name)
        actions = pa.table(table.get_add_actions(flatten=True))
        first = min([before, *(_holding(actions, under_way()) if under_way else ())])
        going = sum((size for bucket, size in _sizes(actions, "bucket").items() if bucket < first), Size())
        try:
            if going.files:
                rewritten(table, methodcaller("delete", f"bucket < '{first}'"))
            return going
        except CommitFailedError:
            continue  # another writer came first: look again
    raise LakeError(f"{delta.path(name)}: lost {_RACES} commits in a row", remedy="Collect again, at a quieter time")


def _holding(actions: pa.Table, batches: Iterable[int]) -> list[str]:
    """Buckets of files that can hold rows of some batches; rows of another replica's same number count too."""
    rows = actions.select(["partition.bucket", "min.batch", "max.batch"]).to_pylist() if actions.num_rows else []
    return [
        row["partition.bucket"]
        for batch in batches
        for row in rows
        if row["min.batch"] is None or row["min.batch"] <= batch <= row["max.batch"]
    ]


def compact(delta: DeltaTables, name: str, fewest: int) -> int:
    """Rewrite a table's small files into few, where there are so many; returns how many. Whoever appends goes on.

    For tables that Spark is not started for. 0 as well where another writer came first.
    """
    small = [size for size in delta.files(name)["size_bytes"].to_pylist() if size < LARGE] if delta.rows(name) else []
    if len(small) < fewest:
        return 0
    try:
        table = delta.open(name)
        done = rewritten(table, lambda small: small.optimize.compact(target_size=LARGE))
    except CommitFailedError:
        return 0
    return int(done["numFilesRemoved"])


def drop_below(delta: DeltaTables, name: str, column: str, number: int) -> None:
    """Drop a table's partitions whose number is lower: a metadata-only commit."""
    if any(int(value) < number for value in sizes(delta, name, column)):
        _delete(delta, name, f"{column} < {number}")


def drop_batches(delta: DeltaTables, name: str, replica: str, sequence: str, below: int) -> int:
    """Drop a sequence's rows of batches below a number from `journal` or `metrics`. Returns rows dropped."""
    where = f"replica = '{replica}' AND sequence = '{sequence}' AND batch < {below}"
    return int(_delete(delta, name, where)["num_deleted_rows"] or 0)


def _delete(delta: DeltaTables, name: str, where: str) -> dict[str, Any]:
    for _ in range(_RACES):
        try:
            table = delta.open(name)
            return dict(rewritten(table, methodcaller("delete", where)))
        except CommitFailedError:
            continue  # another writer came first: look again
    raise LakeError(f"{delta.path(name)}: lost {_RACES} commits in a row", remedy="Collect again, at a quieter time")


class FileSizes(NamedTuple):
    """Files below `small` are rewritten, to files of `most` at most; bytes."""

    small: int
    most: int


def file_sizes(name: str) -> FileSizes:
    """How large a table's files are made."""
    return FileSizes(LARGE_OUTPUT, OUTPUT_FILE) if name == "joined" else FileSizes(LARGE, _ANY_FILE)


class Heap(NamedTuple):
    """Files of one partition that a rewriting would take, and the bytes of all and of the largest.

    `place`: its bucket, or its date; None where the table has neither.
    """

    place: str | None
    files: int
    bytes: int
    largest: int


def heaps(delta: DeltaTables, name: str) -> list[Heap]:
    """Of each partition what SparkTables.rewrite would take; one without a place where the table has none."""
    actions = delta.files(name)
    if name != SORTED and actions.num_rows:
        actions = actions.filter(pc.less(actions["size_bytes"], file_sizes(name).small))
    if not actions.num_rows:
        return []
    keys = [column for column in actions.schema.names if column.startswith("partition.")]
    groups = actions.group_by(keys).aggregate([("path", "count"), ("size_bytes", "sum"), ("size_bytes", "max")])
    by = place_column(delta.table(name))
    return [
        Heap(
            str(row[f"partition.{by}"]) if by else None, row["path_count"], row["size_bytes_sum"], row["size_bytes_max"]
        )
        for row in groups.to_pylist()
    ]


def place_column(table: Table) -> str | None:
    """The partition column that is of event time, if there is one: what it holds begins with a date."""
    return next((name for name in table.partitions if name in ("bucket", "event_date")), None)
