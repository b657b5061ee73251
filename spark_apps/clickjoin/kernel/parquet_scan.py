"""Rows that have one of some ids, out of data files: times are read first, the rest where row groups have one of them.

Few rows share a microsecond, and times cost a tenth of what ids cost. Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from clickjoin.kernel.arrays import bool_array, int64_array, to_numpy, where
from clickjoin.kernel.data_skipping import EVER, Ends, between, near
from clickjoin.kernel.filesystem import filesystem
from clickjoin.kernel.page_index import PageIndex, page_index
from clickjoin.kernel.parquet_pages import rows_of, values
from clickjoin.kernel.short_files import open_file
from clickjoin.kernel.wanted_ids import WantedIds

_ID, _TIME, _BATCH = "event_id", "event_time", "batch"
_FEW_VALUES = ["source_partition", "replica"]  # to copy their texts for each row costs more than all the rest
_MICROS = pa.timestamp("us", "UTC")
_GROUPS_AT_ONCE = 16  # a call for each costs more than the rows; all of a file may be more than there is memory
_ROWS_AT_ONCE = 65_536  # of such groups
_PAGES_AT_ONCE = 128
_FOOTERS = 500
KEYS = pa.schema([(_ID, pa.string()), (_TIME, _MICROS)])  # what an event is known by


class TimeRanges(NamedTuple):
    """Event times to find, microseconds: for some length from each start on, sorted, one or more; 0: just then."""

    starts: np.ndarray[Any, Any]
    length: int = 0


def scan_by_key(
    root: str,
    files: Sequence[str],
    ids: Any,
    when: TimeRanges,
    schema: pa.Schema,
    readers: int = 2,
    *,
    others: bool = False,
) -> pa.Table:
    """Rows of some files below a folder whose `event_id` is one of these, and whose `event_time` lies in a stretch.

    Rows of other times may be among them where the stretches have a length. `others`: so may rows of other ids at a
    wanted time, while rows are not many more than ids; to check each id takes longer than all else. Columns out: the
    schema's, which names both; unknown ones null. Errors: FileNotFoundError where a file has gone.
    """
    wanted = WantedIds(ids, others=others)

    def one(file: str) -> list[pa.RecordBatch]:
        with open_file(root, file) as opened:
            if is_local and (index := page_index(opened, f"{root}/{file}", _TIME, schema.names)):
                with suppress(pa.ArrowInvalid):  # of pages that are not as their index says: PyArrow needs none
                    return _batches(_of_pages(opened, index, wanted, when, schema))
            known = pq.read_metadata(opened)
            few = [name for name in _FEW_VALUES if name in known.schema.names]
            found = pq.ParquetFile(opened, metadata=known, read_dictionary=few)
            return _batches(_of_groups(found, groups, wanted, times, schema) for groups, times in _groups(known, when))

    # On an object store each page would be a request; a column chunk is one, too.
    is_local = isinstance(filesystem(root)[0], pafs.LocalFileSystem)
    with ThreadPoolExecutor(readers) as pool:
        rows = pa.Table.from_batches([batch for held in pool.map(one, files) for batch in held], schema=schema)
    return wanted.only(rows, len(ids))


def _batches(parts: Iterable[pa.Table]) -> list[pa.RecordBatch]:
    return [batch for part in parts for batch in part.to_batches()]


def _of_pages(
    opened: pa.NativeFile, index: PageIndex, wanted: WantedIds, when: TimeRanges, schema: pa.Schema
) -> Iterator[pa.Table]:
    """The same of a file whose pages are known: of the others nothing is read."""
    ends, edges = index.ends(opened, _TIME), index.pages(opened, _TIME).rows
    pages = np.flatnonzero(near(ends, when.starts, when.length))
    for some in (pages[at : at + _PAGES_AT_ONCE] for at in range(0, len(pages), _PAGES_AT_ONCE)):
        rows, held = rows_of(edges[some], edges[some + 1]), dict[str, Any]()
        if not when.length:
            times = between(when.starts, ends.least[some].min(), ends.most[some].max())
            rows, held = _at(rows, {_TIME: (found := values(opened, index, _TIME, rows))}, _where(found, times))
        if len(rows):
            held[_ID] = found = values(opened, index, _ID, rows)
            rows, held = _at(rows, held, np.flatnonzero(wanted.among(found)))
        if len(rows):
            names = (index.columns.keys() & schema.names) - held.keys()
            yield _shaped(pa.table(held | {name: values(opened, index, name, rows) for name in names}), schema)


def _at(rows: np.ndarray[Any, Any], held: dict[str, Any], at: np.ndarray[Any, Any]) -> tuple[Any, dict[str, Any]]:
    return rows[at], {name: column.take(int64_array(at)) for name, column in held.items()}


def read_columns(root: str, files: Sequence[str], schema: pa.Schema) -> pa.Table:
    """All rows of some files below a folder. Columns out: the schema's; unknown ones null."""
    return pa.concat_tables([schema.empty_table(), *(read_file(root, file, schema) for file in files)])


def read_file(root: str, file: str, schema: pa.Schema) -> pa.Table:
    """The same of one file."""
    with open_file(root, file) as opened:
        found = pq.ParquetFile(opened)
        names = [name for name in schema.names if name in found.schema_arrow.names]
        return _shaped(found.read(columns=names, use_threads=False), schema)


def ids_near(root: str, file: str, ids: pa.Array) -> pa.ChunkedArray:
    """Ids of those row groups of a file that can hold one of some ids, by the groups' least and greatest.

    Few groups where the file is sorted by id, else all of them. Errors: FileNotFoundError where it has gone.
    """
    wanted = sorted(ids.to_pylist())
    with open_file(root, file) as opened:
        found = pq.ParquetFile(opened, metadata=_known_metadata(root, file, opened))
        column = found.metadata.schema.names.index(_ID)
        groups = [
            number
            for number in range(found.metadata.num_row_groups)
            if _may_hold(found.metadata.row_group(number).column(column).statistics, wanted)
        ]
        return found.read_row_groups(groups, columns=[_ID], use_threads=False)[_ID].cast(pa.string())


def _may_hold(statistics: Any, wanted: list[str]) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    first = bisect_left(wanted, statistics.min)
    return first < len(wanted) and wanted[first] <= statistics.max


def _known_metadata(root: str, file: str, opened: pa.NativeFile) -> Any:
    """A file's footer, kept in the process for the files that were asked last: it never changes."""
    # Kept at Arrow's module: this one travels to executors by value, and what it kept would travel with it.
    known: dict[str, Any] = pa.__dict__.setdefault("_clickjoin_footers", {})
    name = f"{root}/{file}"
    if name not in known:
        for old in list(known)[: max(len(known) - _FOOTERS, 0)]:
            known.pop(old, None)
        known[name] = pq.read_metadata(opened)
    return known[name]


def of_batch(root: str, file: str, batch: int, schema: pa.Schema) -> pa.Table:
    """A batch's rows of a file, which may be one that many batches' files were rewritten into since.

    Columns out: the schema's, which names `batch`; unknown ones null.
    """
    return _between(root, file, _BATCH, batch, batch + 1, schema)


def of_times(root: str, file: str, low: int, high: int, schema: pa.Schema) -> pa.Table:
    """Rows of a file whose `event_time` lies from one microsecond on to before another.

    Columns out: the schema's, which names it; unknown ones null.
    """
    return _between(root, file, _TIME, low, high, schema)


def _between(root: str, file: str, column: str, low: int, high: int, schema: pa.Schema) -> pa.Table:
    """Rows whose value, never null, lies in [low, high): group by group, and only groups that can hold one."""
    parts = [pa.Table.from_batches([], schema)]
    with open_file(root, file) as opened:
        found = pq.ParquetFile(opened)
        names = [name for name in schema.names if name in found.schema_arrow.names]
        ends = _ends(found.metadata, column)
        groups = np.flatnonzero((ends.least < high) & (ends.most >= low))
        for some in _portions(found.metadata, groups):
            rows = _shaped(found.read_row_groups(some.tolist(), columns=names, use_threads=False), schema)
            values = to_numpy(rows[column].cast(pa.int64()))
            parts.append(where(rows, (values >= low) & (values < high)))
    return pa.concat_tables(parts)


def _groups(metadata: Any, when: TimeRanges) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]]:
    """Some row groups at a time that can hold a wanted time, and those times; none for stretches.

    In a file that is sorted, or grew, each group is a short stretch.
    """
    ends = _ends(metadata, _TIME)
    groups = np.flatnonzero(near(ends, when.starts, when.length))
    for some in _portions(metadata, groups):
        yield some, None if when.length else between(when.starts, ends.least[some].min(), ends.most[some].max())


def _portions(metadata: Any, groups: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Row groups, some at a time."""
    size = max(min(_GROUPS_AT_ONCE, _ROWS_AT_ONCE * metadata.num_row_groups // max(metadata.num_rows, 1)), 1)
    return (groups[at : at + size] for at in range(0, len(groups), size))


def _ends(metadata: Any, name: str) -> Ends:
    """Of each row group the least and the greatest value of a column."""
    column = next(n for n in range(metadata.num_columns) if metadata.schema.column(n).path == name)
    known = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
    ends = [(s.min_raw, s.max_raw) if s is not None and s.has_min_max else (-EVER, EVER) for s in known]
    least, most = (np.array([end[side] for end in ends], np.int64) for side in (0, 1))
    return Ends(least, most)


def _of_groups(
    file: pq.ParquetFile,
    groups: np.ndarray[Any, Any],
    wanted: WantedIds,
    times: np.ndarray[Any, Any] | None,
    schema: pa.Schema,
) -> pa.Table:
    first = _ID if times is None else _TIME
    found = _read(file, groups, [first])[first]
    at = np.flatnonzero(wanted.among(found)) if times is None else _where(found, times)
    if not len(at):
        return pa.Table.from_batches([], schema)
    sizes = np.array([file.metadata.row_group(number).num_rows for number in groups.tolist()])
    ends = np.cumsum(sizes)
    hit, group = np.unique(np.searchsorted(ends, at, "right"), return_inverse=True)
    keep = np.zeros(sizes[hit].sum(), np.bool_)
    keep[at - (ends[hit] - np.cumsum(sizes[hit]))[group]] = True
    more = [name for name in schema.names if name in file.schema_arrow.names and name != first]
    rows = _read(file, groups[hit], more).filter(bool_array(keep))
    rows = rows.append_column(first, found.take(int64_array(at)))
    return _shaped(rows if times is None else wanted.few(rows, len(times)), schema)


def _read(file: pq.ParquetFile, groups: np.ndarray[Any, Any], names: list[str]) -> pa.Table:
    rows = file.read_row_groups(groups.tolist(), columns=names, use_threads=False)
    for at, field in enumerate(rows.schema):
        if field.type == pa.string_view():  # of a file that delta-rs has written again; Arrow cannot filter these
            rows = rows.set_column(at, field.name, rows[field.name].cast(pa.string()))
    return rows


def _where(found: pa.ChunkedArray, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where a time is one of some sorted ones. In a sorted file they are found by bisection, without a scan."""
    micros = found.cast(_MICROS).cast(pa.int64())
    held = to_numpy(micros) if not found.null_count else None
    if held is None or (held[1:] < held[:-1]).any():
        return np.flatnonzero(to_numpy(pc.is_in(micros, value_set=int64_array(times))))
    first, last = (np.searchsorted(held, times, side) for side in ("left", "right"))
    count = last - first
    return np.repeat(last - np.cumsum(count), count) + np.arange(count.sum())


def _shaped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)
