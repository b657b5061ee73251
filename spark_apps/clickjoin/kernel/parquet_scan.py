"""Rows that have one of some ids, out of data files: times are read first, the rest where row groups have one of them.

Few rows share a microsecond, and times cost a tenth of what ids cost. Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from clickjoin.kernel.arrays import Array, bool_array, int64_array, to_numpy, where
from clickjoin.kernel.data_skipping import between, near
from clickjoin.kernel.filesystem import filesystem, open_file
from clickjoin.kernel.parquet_rows import ends_of, groups_of, portions, shaped

_ID, _TIME = "event_id", "event_time"
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
    others: bool = False,
) -> pa.Table:
    """Rows of some files below a folder whose `event_id` is one of these, and whose `event_time` lies in a stretch.

    Rows of other times may be among them where the stretches have a length. `others`: so may rows of other ids at a
    wanted time, while rows are not many more than ids; to check each id takes longer than all else. Columns out: the
    schema's, which names both; unknown ones null. Errors: FileNotFoundError where a file has gone, ArrowInvalid where
    one is damaged.
    """
    wanted = WantedIds(ids, others=others)

    def one(file: str) -> list[pa.RecordBatch]:
        with open_file(root, file) as opened:
            known = pq.read_metadata(opened)
            few = [name for name in _FEW_VALUES if name in known.schema.names]
            found = pq.ParquetFile(opened, metadata=known, read_dictionary=few, pre_buffer=is_remote)
            try:
                parts = _groups(known, when)
                rows = (_of_groups(found, groups, wanted, times, schema) for groups, times in parts)
                return [batch for part in rows for batch in part.to_batches()]
            except pa.ArrowInvalid as error:
                raise pa.ArrowInvalid(f"{root}/{file}: {error}") from error

    is_remote = not isinstance(filesystem(root)[0], pafs.LocalFileSystem)
    with ThreadPoolExecutor(readers * (_WAITING if is_remote else 1)) as pool:
        rows = pa.Table.from_batches([batch for held in pool.map(one, files) for batch in held], schema=schema)
    return wanted.only(rows, len(ids))


def _groups(metadata: Any, when: TimeRanges) -> Iterator[tuple[Array, Array | None]]:
    """Some row groups at a time that can hold a wanted time, and those times; none for stretches.

    In a file that is sorted, or grew, each group is a short stretch.
    """
    ends = ends_of(metadata, _TIME)
    groups = np.flatnonzero(near(ends, when.starts, when.length))
    for some in portions(metadata, groups):
        yield some, None if when.length else between(when.starts, ends.least[some].min(), ends.most[some].max())


def _of_groups(
    file: pq.ParquetFile,
    groups: Array,
    wanted: WantedIds,
    times: Array | None,
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

    def __init__(self, ids: Any, *, others: bool) -> None:
        self._ids, self._others = ids, others
        self._unique: pa.Array | None = None

    def among(self, ids: Any) -> np.ndarray[Any, Any]:
        """Which of some ids are wanted."""
        if self._unique is None:
            self._unique = pc.unique(self._ids)
        return to_numpy(pc.is_in(ids, value_set=self._unique))

    def only(self, rows: pa.Table, asked: int) -> pa.Table:
        """Rows whose id is wanted; all where others may be among them and they are not many more than was asked for."""
        few = self._others and rows.num_rows <= 2 * asked + ROWS_TO_HOLD and not rows[_ID].null_count
        return rows if few else where(rows, self.among(rows[_ID]))

    def few(self, rows: pa.Table, asked: int) -> pa.Table:
        """The same of some of the rows, which are held as they are while they are few."""
        return rows if rows.num_rows <= ROWS_TO_HOLD else self.only(rows, asked)
