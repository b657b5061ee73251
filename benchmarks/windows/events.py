"""Events that all contenders are given, in order of time: Zipf keys, an hour; and what must come of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

LANES = 2  # readers of Flink's: each follows a file of its own in time
BEGAN = 1_767_225_600_000  # milliseconds: 2026-01-01
HOUR, MINUTE = 3_600_000, 60_000
LAST = "the-last"  # key of an event far behind all others: Structured Streaming closes windows by events alone
TIME = pa.timestamp("us", tz="UTC")
COUNTS = ("item", "window_start", "num")


@dataclass(frozen=True)
class Load:
    """Events on disk: `slices`, files that follow one another in time; `lanes`, the same in a file a reader.

    `until`: milliseconds; no window that counts ends later.
    """

    folder: Path
    events: int
    until: int

    @property
    def slices(self) -> Path:
        return self.folder / "slices"

    @property
    def lanes(self) -> Path:
        return self.folder / "lanes"


@dataclass(frozen=True)
class Ended:
    """A run: seconds, what it made, and events a second between the first and the last tenth of them (0: unknown)."""

    seconds: float
    rows: pa.Table
    steady: float = 0.0


def zipf(folder: Path, events: int, keys: int, batch: int) -> Load:
    """So many events over an hour, and the last one; keys by Zipf's law (exponent 1)."""
    rng = np.random.default_rng((events, keys))
    share = np.cumsum(1 / np.arange(1, keys + 1))
    names = np.searchsorted(share / share[-1], rng.random(events - 1))
    times = BEGAN + np.sort(rng.integers(0, HOUR, events - 1))
    items = pc.binary_join_element_wise("k", pa.array(names).cast(pa.string()), "")
    rows = pa.table({
        "id": pa.array(np.arange(events)).cast(pa.string()),
        "at": np.append(times, BEGAN + 2 * HOUR),
        "item": pa.concat_arrays([items, pa.array([LAST])]),
    })  # fmt: skip
    return laid(folder, rows, batch, BEGAN + HOUR)


def laid(folder: Path, rows: pa.Table, batch: int, until: int) -> Load:
    """Write rows that are in order of column `at` (milliseconds)."""
    load = Load(folder, rows.num_rows, until)
    for each in (load.slices, load.lanes):
        each.mkdir(parents=True)
    timed = rows.append_column("event_time", pc.multiply(rows["at"], 1000).cast(TIME))
    for nth, low in enumerate(range(0, rows.num_rows, batch)):
        pq.write_table(timed.slice(low, batch), load.slices / f"{nth:05}.parquet")
    for lane in range(LANES):
        own = pa.array(np.arange(lane, rows.num_rows, LANES))
        pq.write_table(rows.take(own), load.lanes / f"{lane}.parquet")
    return load


def read(load: Load) -> pa.Table:
    """All events, in order."""
    return pa.concat_tables(pq.read_table(path) for path in sorted(load.slices.glob("*.parquet")))


def counted(load: Load, width: int = MINUTE) -> pa.Table:
    """What must come out: columns COUNTS, in order; windows that end in time."""
    rows = read(load)
    windows = np.asarray(rows["at"]) // width
    item = rows["item"].combine_chunks().dictionary_encode()
    pairs, counts = np.unique(windows * len(item.dictionary) + np.asarray(item.indices), return_counts=True)
    windows, items = np.divmod(pairs, len(item.dictionary))
    values = (item.dictionary.take(pa.array(items)), windows * width, counts)
    found = pa.table(dict(zip(COUNTS, values, strict=True)))
    return ordered(found.filter(pc.less_equal(found["window_start"], load.until - width)))


def ordered(rows: pa.Table) -> pa.Table:
    """Rows of a result as they are compared."""
    rows = rows.combine_chunks()
    return rows.sort_by([(name, "ascending") for name in rows.column_names])


def require(name: str, found: pa.Table, expected: pa.Table) -> int:
    """Rows of a result that is right. Errors: SystemExit for one that is not, so that there is no figure of it."""
    found = ordered(found.select(expected.column_names).cast(expected.schema))
    if not found.equals(expected):
        raise SystemExit(
            f"{name} is wrong: {found.num_rows:,} rows where there must be {expected.num_rows:,}, or others"
        )
    return int(found.num_rows)


def millis(times: pa.ChunkedArray) -> pa.Array:
    """Times as milliseconds since 1970."""
    return times.cast(pa.timestamp("ms")).cast(pa.int64())


def first(load: Load, most: int, folder: Path, batch: int) -> Load:
    """The first `most` of its events, with the last one behind them; the load itself where it has no more."""
    if most >= load.events:
        return load
    rows = read(load).drop_columns("event_time")
    taken = pa.concat_tables([rows.slice(0, most), rows.slice(rows.num_rows - 1)])
    until = int(rows["at"][most].as_py()) // MINUTE * MINUTE + MINUTE
    return laid(folder, taken, batch, until)
