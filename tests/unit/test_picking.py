"""Rows picked out of files of many row groups, checked against all rows looked at one by one."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.kernel import parquet_scan
from clickjoin.kernel.parquet_scan import KEYS, TimeRanges, of_batch, scan_by_key

SCHEMA = pa.schema([*KEYS, ("payload", pa.string()), ("more", pa.int64())])
ROW = st.tuples(st.integers(0, 30), st.integers(0, 60))  # an id, and its time: many share one of them


@given(
    st.lists(ROW, max_size=200),
    st.lists(ROW, min_size=1, max_size=20),
    st.integers(1, 7),
    st.sampled_from([0, 5]),
    st.booleans(),
    st.sampled_from([0, 1_000]),
)
def test_as_one_by_one(
    held: list[tuple[int, int]], wanted: list[tuple[int, int]], size: int, length: int, in_order: bool, hold: int
) -> None:
    held = sorted(held, key=lambda row: row[1]) if in_order else held
    starts = sorted({time for _, time in wanted})
    known = {f"id{number}" for number, _ in wanted}
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_scan, "_ROWS_TO_HOLD", hold)
        _write(Path(folder) / "one.parquet", held, size)
        when = TimeRanges(np.array(starts, np.int64), length)
        found = scan_by_key(f"file://{folder}", ["one.parquet"], pa.array(sorted(known), pa.string()), when, SCHEMA)
    assert found.schema == SCHEMA
    got = sorted(zip(found["event_id"].to_pylist(), _micros(found), found["payload"].to_pylist(), strict=True))
    every = [(f"id{number}", time, f"p{at}") for at, (number, time) in enumerate(held) if f"id{number}" in known]
    near = [row for row in every if any(start <= row[1] <= start + length for start in starts)]
    if length == 0:
        assert got == sorted(near)
    else:  # rows of other times may be among them
        assert set(near) <= set(got) <= set(every)
        assert len(got) == len(set(got))


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 7), st.integers(0, 9), st.booleans())
def test_a_batchs_rows_of_a_file_of_many(batches: list[int], size: int, wanted: int, statistics: bool) -> None:
    columns = {"batch": pa.array(batches, pa.int64()), "payload": [f"p{at}" for at in range(len(batches))]}
    schema = pa.schema([("payload", pa.string()), ("batch", pa.int64()), ("more", pa.int64())])
    with TemporaryDirectory() as folder:
        file = Path(folder) / "one.parquet"
        pq.write_table(pa.table(columns), file, row_group_size=size, write_statistics=statistics)
        found = of_batch(f"file://{folder}", file.name, wanted, schema)
    assert found.schema == schema
    assert found["payload"].to_pylist() == [f"p{at}" for at, batch in enumerate(batches) if batch == wanted]


def _write(path: Path, held: list[tuple[int, int]], size: int) -> None:
    columns = [[f"id{number}" for number, _ in held], [time for _, time in held], [f"p{at}" for at in range(len(held))]]
    pq.write_table(pa.table(columns, schema=pa.schema(list(SCHEMA)[:3])), path, row_group_size=size)


def _micros(rows: pa.Table) -> list[int]:
    return rows["event_time"].cast(pa.int64()).to_pylist()
