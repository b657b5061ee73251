"""How many events a key has in each span of time, counted in the output itself, by what lies there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.readable import ReadableTables, readable
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import micros_of
from clickjoin.model.places import JOINED
from clickjoin.processing.events import keys_of, plain
from clickjoin.processing.loading import require_process

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_TIME = "event_time"
_BLUR = timedelta(milliseconds=1)  # the log's statistics know no shorter time
MOST_ROWS = 5_000_000  # that are looked at for one answer


@dataclass(frozen=True)
class KeyCounts:
    """Events by where their span begins (microseconds), those of none left out; and how many rows were looked at."""

    counts: dict[int, int]
    rows: int


def key_counts(pipeline: Pipeline, key: str, since: datetime, until: datetime, span: int) -> KeyCounts:
    """Count events of a key from `since` to before `until`, in spans of so many microseconds, reading few columns.

    Errors: LakeError, also where the files that may hold them have more rows than MOST_ROWS.
    """
    process, tables = require_process(pipeline), ReadableTables(pipeline.root)
    near = [(_TIME, ">=", since - _BLUR), (_TIME, "<", until + _BLUR)]
    rows = _rows_of(tables, since - _BLUR, until + _BLUR)
    if rows > MOST_ROWS:
        raise LakeError(
            f"{pipeline.root}: files with {rows:,} rows may hold events of this time", remedy="Ask for a shorter time"
        )
    columns = list(dict.fromkeys([_TIME, *(str(path[0]) for path in process.paths)]))
    found: Counter[int] = Counter()
    with readable(pipeline.root, JOINED):
        for batch in tables.batches(JOINED, near, columns):
            part = plain(pa.Table.from_batches([batch]))
            mine = part.filter(pc.fill_null(pc.equal(keys_of(part, process.paths), key), False))
            times = np.asarray(mine[_TIME].cast(pa.int64()))
            spans = times[(times >= micros_of(since)) & (times < micros_of(until))] // span
            found.update(dict(zip(*(each.tolist() for each in np.unique(spans, return_counts=True)), strict=True)))
    return KeyCounts({at * span: count for at, count in sorted(found.items())}, rows)


def _rows_of(tables: DeltaReader, since: datetime, until: datetime) -> int:
    """Rows of the files that may hold events of this time, by the log alone."""
    files = tables.files(JOINED)
    if not files.num_rows:
        return 0
    counts: list[Any] = files["num_records"].to_pylist()
    names = [f"{end}.{_TIME}" for end in ("min", "max")]
    ends = [files[name].to_pylist() if name in files.column_names else [None] * len(counts) for name in names]
    low, high = micros_of(since), micros_of(until)
    kept = (
        rows or 0
        for rows, first, last in zip(counts, *ends, strict=True)
        if (last is None or micros_of(last) >= low) and (first is None or micros_of(first) < high)
    )
    return sum(kept)
