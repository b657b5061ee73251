"""How large the parts of tables are, and which are worth rewriting, from their logs alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from clickjoin.kernel.filesystem import open_file
from clickjoin.kernel.parquet_rows import MATCH_KEY
from clickjoin.lake.light_table import LightTable

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.schemas import Table

LARGE = 32 << 20  # bytes of a file that is left as it is: old rows are not written again for the sake of a few new ones
# Of the output, which is for readers of its own: files that are rewritten, and what they are made to, in bytes. Two of
# the former fit into one of the latter, so that whatever is due to be rewritten can be.
LARGE_OUTPUT, OUTPUT_FILE = 64 << 20, 128 << 20
_ANY_FILE = 1 << 30
_SORTED = (("registry", "event_time"), ("registry", "event_id"), ("primary", MATCH_KEY))
# By kernel.data_file; Spark's names hold a task's number.
_BY_US = re.compile(r"(.*/)?part-[0-9a-f-]{36}\.zstd\.parquet")
_SHORTEST, _LAST = 32, "\U0010ffff"  # characters of an end that Spark keeps, and the one that it finds nothing above


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


def one_ended(delta: DeltaReader, name: str) -> list[str | None]:
    """Places (see Heap) of files whose statistics lack an end of a column that has values.

    Readers take that end for null, and find no row of the file by the column. Earlier versions wrote such files.
    """
    table = delta.open(name)
    whole = DeltaTable(table.table_uri) if isinstance(table, LightTable) else table
    files = pa.table(whole.get_add_actions(flatten=True))
    counted = [column.removeprefix("null_count.") for column in files.schema.names if column.startswith("null_count.")]
    columns = [column for column in counted if f"max.{column}" in files.schema.names]
    faulty = {row["path"]: row for column in columns for row in _without_end(delta.path(name), files, column)}
    by = place_column(delta.table(name))
    places = {str(row[f"partition.{by}"]) if by else None for row in faulty.values()}
    return sorted(places, key=str)


def _without_end(root: str, files: pa.Table, column: str) -> list[dict[str, Any]]:
    low, high = pc.is_valid(files[f"min.{column}"]), pc.is_valid(files[f"max.{column}"])
    values = pc.less(files[f"null_count.{column}"], files["num_records"])
    lacking = files.filter(pc.and_(pc.invert(pc.and_(low, high)), pc.or_kleene(values, pc.or_(low, high))))
    parts = [key for key in lacking.schema.names if key.startswith("partition.")]
    rows = lacking.select(["path", *parts]).to_pylist()
    return [row for row in rows if _BY_US.fullmatch(row["path"]) or _has_end(root, row["path"], column)]


def _has_end(root: str, path: str, column: str) -> bool:
    """Whether Spark would write both ends: of a text there is none above a long row of the last character there is.

    Asked of files that Spark has written, or each run would write them again.
    """
    with open_file(root, unquote(path)) as file:
        footer = pq.read_metadata(file)
    if column not in footer.schema.names:
        return False
    at = footer.schema.names.index(column)
    groups = (footer.row_group(number).column(at).statistics for number in range(footer.num_row_groups))
    ends = [found.max for found in groups if found and found.has_min_max]
    text = max((end for end in ends if isinstance(end, str)), default=_LAST * _SHORTEST)
    return len(text) < _SHORTEST or text[_SHORTEST : 2 * _SHORTEST].strip(_LAST) != ""
