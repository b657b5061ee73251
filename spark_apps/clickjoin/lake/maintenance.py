"""How large the parts of tables are, and which are worth rewriting, from their logs alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.parquet_rows import MATCH_KEY

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.schemas import Table

LARGE = 32 << 20  # bytes of a file that is left as it is: old rows are not written again for the sake of a few new ones
# Of the output, which is for readers of its own: files that are rewritten, and what they are made to, in bytes. Two of
# the former fit into one of the latter, so that whatever is due to be rewritten can be.
LARGE_OUTPUT, OUTPUT_FILE = 64 << 20, 128 << 20
_ANY_FILE = 1 << 30
_SORTED = (("registry", "event_time"), ("registry", "event_id"), ("primary", MATCH_KEY))


def is_sorted(name: str, order: str) -> bool:
    """Whether partitions of a table are sorted again as a whole: rows of it are looked up by that column."""
    return (name, order) in _SORTED


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
    return sizes_of(delta.files(name), by)


def sizes_of(actions: pa.Table, by: str) -> dict[str, Size]:
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


def heaps(delta: DeltaReader, name: str, order: str = "event_time") -> list[Heap]:
    """Of each partition what Lake.rewrite would take; one without a place where the table has none."""
    actions = delta.files(name)
    if not is_sorted(name, order) and actions.num_rows:
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
