"""Rows of data files: all of them, of a stretch of values, or those that have one of some ids.

Of ids the times are read first, the rest where row groups have one of them: few rows share a microsecond, and times
cost a tenth of what ids cost. Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from clickjoin.kernel.arrays import Array, bool_array, int64_array, to_numpy, where
from clickjoin.kernel.data_skipping import EVER, Ends, between, near
from clickjoin.kernel.filesystem import filesystem, open_file

_ID, _TIME, _BATCH = "event_id", "event_time", "batch"
PREFERRED = "preferred"
MATCH_KEY = "match_key"  # files of a join by key and time are sorted by it
_GROUPS_AT_ONCE = 16  # a call for each costs more than the rows; all of a file may be more than there is memory
_ROWS_AT_ONCE = 65_536  # of such groups
_FOOTERS = 500


def read_columns(root: str, files: Sequence[str], schema: pa.Schema) -> pa.Table:
    """All rows of some files below a folder. Columns out: the schema's; unknown ones null."""
    return pa.concat_tables([schema.empty_table(), *(read_file(root, file, schema) for file in files)])


def read_file(root: str, file: str, schema: pa.Schema) -> pa.Table:
    """The same of one file."""
    with open_file(root, file) as opened:
        found = pq.ParquetFile(opened)
        names = [name for name in schema.names if name in found.schema_arrow.names]
        return shaped(groups_of(found, range(found.num_row_groups), names), schema)


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
        return groups_of(found, groups, [_ID])[_ID].cast(pa.string())


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
        ends = ends_of(found.metadata, column)
        groups = np.flatnonzero((ends.least < high) & (ends.most >= low))
        for some in portions(found.metadata, groups):
            rows = shaped(groups_of(found, some.tolist(), names), schema)
            values = to_numpy(rows[column].cast(pa.int64()))
            parts.append(where(rows, (values >= low) & (values < high)))
    return pa.concat_tables(parts)


def groups_of(file: pq.ParquetFile, groups: Sequence[int], names: list[str]) -> pa.Table:
    """Some columns of some row groups.

    Errors: ArrowInvalid where there are other than so many rows: PyArrow reads a column that is short by itself without
    a word, and each of its values then stands in another row.
    """
    rows = file.read_row_groups(list(groups), columns=names, use_threads=False)
    known = sum(file.metadata.row_group(number).num_rows for number in groups)
    if names and rows.num_rows != known:
        raise pa.ArrowInvalid(f"{', '.join(names)}: {rows.num_rows} values for {known} rows, so the file is damaged")
    return rows


def portions(metadata: Any, groups: Array) -> Iterator[Array]:
    """Row groups, some at a time."""
    size = max(min(_GROUPS_AT_ONCE, _ROWS_AT_ONCE * metadata.num_row_groups // max(metadata.num_rows, 1)), 1)
    return (groups[at : at + size] for at in range(0, len(groups), size))


def ends_of(metadata: Any, name: str) -> Ends:
    """Of each row group the least and the greatest value of a column, or less and more, by the footer's statistics.

    Where it has not both, or they contradict each other, the group can hold any value. A footer has no checksum, so
    each group reaches to its neighbours' ends: in a sorted file one damaged end has then no group between two others
    passed over.
    """
    column = next(n for n in range(metadata.num_columns) if metadata.schema.column(n).path == name)
    known = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
    if '"timeUnit"' in (kind := metadata.schema.column(column).logical_type.to_json()) and '"microseconds"' not in kind:
        known = [None] * len(known)  # of a file from elsewhere: its figures are not in our unit
    ends = [(s.min_raw, s.max_raw) if s is not None and s.has_min_max else (-EVER, EVER) for s in known]
    least, most = (np.array([end[side] for end in ends], np.int64).clip(-EVER, EVER) for side in (0, 1))
    least, most = np.where(least > most, -EVER, least), np.where(least > most, EVER, most)
    return Ends(np.minimum(least, np.append(EVER, most)[:-1]), np.maximum(most, np.append(least, -EVER)[1:]))


def shaped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with a schema's columns in its order; those that they lack are null, others go."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)


_FEW_VALUES = ["source_partition", "replica"]  # to copy their texts for each row costs more than all the rest
_MICROS = pa.timestamp("us", "UTC")
_WAITING = 4  # readers of an object store for each of a disk: they wait for requests
KEYS = pa.schema([(_ID, pa.string()), (_TIME, _MICROS)])  # what an event is known by


class TimeRanges(NamedTuple):
    """Event times to find, microseconds: for some length from each start on, sorted, one or more; 0: just then."""

    starts: Array
    length: int = 0


def scan_by_key(
    root: str,
    files: Sequence[str],
    ids: Any,
    when: TimeRanges,
    schema: pa.Schema,
    readers: int = 2,
    *,
    by: str = _ID,
    others: bool = False,
    keys: Any = None,
) -> pa.Table:
    """Rows of some files below a folder whose `event_id` is one of these, and whose `event_time` lies in a stretch.

    Rows of other times may be among them where the stretches have a length. `by`: the column that is compared, if it is
    another. `others`: so may rows of other ids at a wanted time, while rows are not many more than ids; to check each
    id takes longer than all else. `keys`: the match keys of the rows, or a row has none: row groups of others alone are
    passed over. Columns out: the schema's, which names both; unknown ones null. Errors:
    FileNotFoundError where a file has gone, ArrowInvalid where one is damaged.
    """
    wanted = WantedIds(ids, others=others, by=by)
    sorted_keys = [] if keys is None else sorted(pc.unique(keys).to_pylist())

    def one(file: str) -> list[pa.RecordBatch]:
        with open_file(root, file) as opened:
            known = pq.read_metadata(opened)
            few = [name for name in _FEW_VALUES if name in known.schema.names]
            found = pq.ParquetFile(opened, metadata=known, read_dictionary=few, pre_buffer=is_remote)
            try:
                parts = _groups(known, when, sorted_keys)
                rows = (_of_groups(found, groups, wanted, times, schema) for groups, times in parts)
                return [batch for part in rows for batch in part.to_batches()]
            except pa.ArrowInvalid as error:
                raise pa.ArrowInvalid(f"{root}/{file}: {error}") from error

    is_remote = not isinstance(filesystem(root)[0], pafs.LocalFileSystem)
    with ThreadPoolExecutor(readers * (_WAITING if is_remote else 1)) as pool:
        rows = pa.Table.from_batches([batch for held in pool.map(one, files) for batch in held], schema=schema)
    return wanted.only(rows, len(ids))


def _groups(metadata: Any, when: TimeRanges, keys: list[str]) -> Iterator[tuple[Array, Array | None]]:
    """Some row groups at a time that can hold a wanted time, and those times; none for stretches.

    In a file that is sorted, or grew, each group is a short stretch. `keys`: sorted; empty: of any key.
    """
    ends = ends_of(metadata, _TIME)
    groups = np.flatnonzero(near(ends, when.starts, when.length))
    if keys and metadata.num_row_groups > 1:
        groups = groups[_can_hold(metadata, groups, keys)]
    for some in portions(metadata, groups):
        yield some, None if when.length else between(when.starts, ends.least[some].min(), ends.most[some].max())


def _can_hold(metadata: Any, groups: Array, keys: list[str]) -> Array:
    """Which of some row groups can hold one of some sorted match keys, or a row without one: as ends_of has ends."""
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    if MATCH_KEY not in names:
        return np.ones(len(groups), np.bool_)
    column, every = names.index(MATCH_KEY), range(metadata.num_row_groups)
    known = [metadata.row_group(number).column(column).statistics for number in every]
    ends = [(s.min, s.max) if s is not None and s.has_min_max and s.min <= s.max else None for s in known]
    full = [s is not None and s.has_null_count and not s.null_count for s in known]

    def can_hold(number: int) -> bool:
        about = ends[max(number - 1, 0) : number + 2]
        if not full[number] or None in about:
            return True
        least, most = ends[number] or ("", "")
        least, most = min(least, *(one[1] for one in about if one)), max(most, *(one[0] for one in about if one))
        first = bisect_left(keys, least)
        return first < len(keys) and keys[first] <= most

    return np.array([can_hold(number) for number in groups.tolist()], np.bool_)


def _of_groups(
    file: pq.ParquetFile, groups: Array, wanted: WantedIds, times: Array | None, schema: pa.Schema
) -> pa.Table:
    first = wanted.by if times is None else _TIME
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
    return shaped(rows if times is None else wanted.few(rows, len(times)), schema)


def _read(file: pq.ParquetFile, groups: Array, names: list[str]) -> pa.Table:
    rows = groups_of(file, groups.tolist(), names)
    for at, field in enumerate(rows.schema):
        if field.type == pa.string_view():  # of a file that delta-rs has written again; Arrow cannot filter these
            rows = rows.set_column(at, field.name, rows[field.name].cast(pa.string()))
    return rows


def _where(found: pa.ChunkedArray, times: Array) -> Array:
    """Where a time is one of some sorted ones. In a sorted file they are found by bisection, without a scan."""
    micros = found.cast(_MICROS).cast(pa.int64())
    held = to_numpy(micros) if not found.null_count else None
    if held is None or (held[1:] < held[:-1]).any():
        return np.flatnonzero(to_numpy(pc.is_in(micros, value_set=int64_array(times))))
    first, last = (np.searchsorted(held, times, side) for side in ("left", "right"))
    count = last - first
    return np.repeat(last - np.cumsum(count), count) + np.arange(count.sum())


ROWS_TO_HOLD = 1_000  # until all are checked against the ids at once: of times that many events share they are many


class WantedIds:
    """Ids that are looked for: their hash table is made when it is first asked for."""

    def __init__(self, ids: Any, *, others: bool, by: str = _ID) -> None:
        self._ids, self._others, self.by = ids, others, by
        self._unique: pa.Array | None = None

    def among(self, ids: Any) -> np.ndarray[Any, Any]:
        """Which of some ids are wanted."""
        if self._unique is None:
            self._unique = pc.unique(self._ids)
        return to_numpy(pc.is_in(ids, value_set=self._unique))

    def only(self, rows: pa.Table, asked: int) -> pa.Table:
        """Rows whose id is wanted; all where others may be among them and they are not many more than was asked for."""
        few = self._others and rows.num_rows <= 2 * asked + ROWS_TO_HOLD and not rows[self.by].null_count
        return rows if few else where(rows, self.among(rows[self.by]))

    def few(self, rows: pa.Table, asked: int) -> pa.Table:
        """The same of some of the rows, which are held as they are while they are few."""
        return rows if rows.num_rows <= ROWS_TO_HOLD else self.only(rows, asked)


class Files(NamedTuple):
    """Data files below a folder, and the event times that each can hold."""

    root: str
    paths: tuple[str, ...]
    ends: Ends

    def near(self, when: TimeRanges) -> list[str]:
        """Those that can hold such times."""
        if not len(when.starts) or not self.paths:
            return []
        return [self.paths[at] for at in np.flatnonzero(near(self.ends, when.starts, when.length))]

    def rows(
        self, ids: pa.ChunkedArray, when: TimeRanges, schema: pa.Schema, by: str = _ID, *,
        others: bool = False, keys: Any = None,
    ) -> pa.Table:  # fmt: skip
        """Rows with one of these ids, from the files that can hold them; `by`, `others`, `keys`: see scan_by_key."""
        files = self.near(when)
        if not files:
            return pa.Table.from_batches([], schema)
        return scan_by_key(self.root, files, ids, when, schema, by=by, others=others, keys=keys)
