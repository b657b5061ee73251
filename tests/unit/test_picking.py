"""Rows picked out of files of many row groups, checked against all rows looked at one by one."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.kernel import parquet_rows
from clickjoin.kernel.parquet_rows import KEYS, TimeRanges, of_batch, scan_by_key

SCHEMA = pa.schema([*KEYS, ("payload", pa.string()), ("more", pa.int64())])
_TIME = SCHEMA.field("event_time").type
ROW = st.tuples(st.integers(0, 30), st.integers(0, 60))  # an id, and its time: many share one of them


@given(
    st.lists(ROW, max_size=200),
    st.lists(ROW, min_size=1, max_size=20),
    st.integers(1, 7),
    st.sampled_from([0, 5]),
    st.booleans(),
    st.sampled_from([0, 1_000]),
    st.booleans(),
)
def test_as_one_by_one(
    held: list[tuple[int, int]], wanted: list[tuple[int, int]], size: int, length: int, in_order: bool, hold: int,
    others: bool,
) -> None:  # fmt: skip
    held = sorted(held, key=lambda row: row[1]) if in_order else held
    starts = sorted({time for _, time in wanted})
    known = {f"id{number}" for number, _ in wanted}
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_rows, "ROWS_TO_HOLD", hold)
        _write(Path(folder) / "one.parquet", held, size)
        when = TimeRanges(np.array(starts, np.int64), length)
        ids = pa.chunked_array([sorted(known), sorted(known)], pa.string())  # as rows name them: some twice
        found = scan_by_key(f"file://{folder}", ["one.parquet"], ids, when, SCHEMA, others=others)
    assert found.schema == SCHEMA
    got = sorted(zip(found["event_id"].to_pylist(), _micros(found), found["payload"].to_pylist(), strict=True))
    every = [(f"id{number}", time, f"p{at}") for at, (number, time) in enumerate(held) if f"id{number}" in known]
    near = [row for row in every if any(start <= row[1] <= start + length for start in starts)]
    of_time = [(f"id{number}", time, f"p{at}") for at, (number, time) in enumerate(held) if time in starts]
    if length == 0 and others:  # rows of other ids may be among them, but not many
        assert set(near) <= set(got) <= set(of_time)
        assert len(got) == len(set(got)) <= max(len(near), 2 * len(ids) + hold)
    elif length == 0:
        assert got == sorted(near)
    else:  # rows of other times may be among them
        assert set(near) <= set(got) <= set(every)
        assert len(got) == len(set(got))


@st.composite
def _layouts(draw: st.DrawFn) -> dict[str, Any]:
    """How a file is written: short row groups and pages, dictionaries, page formats, statistics or none."""
    return {
        "row_group_size": draw(st.integers(1, 60)), "max_rows_per_page": draw(st.integers(1, 9)),
        "write_page_index": draw(st.booleans()), "write_statistics": draw(st.sampled_from([True, True, False])),
        "use_dictionary": draw(st.sampled_from([False, ["payload"], True])),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])), "write_batch_size": 1,
        "compression": draw(st.sampled_from(["zstd", "snappy", "none"])),
    }  # fmt: skip


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 30), st.none() | st.integers(0, 60)), max_size=200),
    st.lists(st.integers(0, 60), min_size=1, max_size=20),
    st.sampled_from([0, 5]),
    st.booleans(),
    _layouts(),
    st.sampled_from([1, 3, 16]),
)
def test_of_any_layout_as_one_by_one(
    held: list[Any], starts: list[int], length: int, in_order: bool, layout: dict[str, Any], at_once: int
) -> None:
    held = sorted(held, key=lambda row: (row[1] is None, row[1])) if in_order else held
    known, times = [f"id{number}" for number in range(0, 30, 2)], np.unique(starts)
    columns = {"event_id": pa.array([None if number is None else f"id{number}" for number, _ in held], pa.string()),
               "event_time": pa.array([time for _, time in held], _TIME),
               "payload": pa.array([f"p{at}" if at % 3 else None for at in range(len(held))], pa.string()),
               "at": pa.array(range(len(held)), pa.int64())}  # fmt: skip
    schema = pa.schema([*SCHEMA, ("at", pa.int64())])
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_rows, "_GROUPS_AT_ONCE", at_once)
        pq.write_table(pa.table(columns), Path(folder) / "one.parquet", **layout)
        found = scan_by_key(folder, ["one.parquet"], pa.array(known), TimeRanges(times, length), schema)
    assert found.schema == schema
    got = found["at"].to_pylist()
    assert found["payload"].to_pylist() == [f"p{at}" if at % 3 else None for at in got]
    assert [(f"id{held[at][0]}", held[at][1]) for at in got] == list(
        zip(found["event_id"].to_pylist(), _micros(found), strict=True)
    )
    every = [at for at, (number, _) in enumerate(held) if f"id{number}" in known]
    near = {
        at for at in every if any(0 <= held[at][1] - start <= length for start in starts if held[at][1] is not None)
    }
    assert len(got) == len(set(got))
    if length == 0:
        assert got == sorted(near)
    else:  # rows of other times may be among them
        assert near <= set(got) <= set(every)


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


def test_each_row_group_has_its_own_dictionary(tmp_path: Path) -> None:
    columns = {"event_id": pa.array(map(str, range(40))), "event_time": pa.array(range(40), _TIME),
               "payload": pa.array([f"p{at // 5}" for at in range(40)])}  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "f", row_group_size=10, max_rows_per_page=2)
    wanted = [1, 7, 12, 28, 39]
    when = TimeRanges(np.array(wanted, np.int64))
    found = scan_by_key(str(tmp_path), ["f"], pa.array(map(str, wanted)), when, SCHEMA)
    assert found["payload"].to_pylist() == [f"p{at // 5}" for at in wanted]


def _write(path: Path, held: list[tuple[int, int]], size: int) -> None:
    columns = [[f"id{number}" for number, _ in held], [time for _, time in held], [f"p{at}" for at in range(len(held))]]
    pq.write_table(pa.table(columns, schema=pa.schema(list(SCHEMA)[:3])), path, row_group_size=size)


def _micros(rows: pa.Table) -> list[int]:
    return rows["event_time"].cast(pa.int64()).to_pylist()
