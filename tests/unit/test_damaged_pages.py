"""Look-ups in data files that are damaged, or from elsewhere: right rows or an error, and no row is missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickjoin.kernel import page_index, parquet_rows, parquet_scan
from clickjoin.kernel.byte_ranges import ByteRanges
from clickjoin.kernel.parquet_scan import KEYS, TimeRanges, scan_by_key

SECOND = 1_000_000  # microseconds
FIRST, ROWS, PAGE = 1_700_000_000 * SECOND, 10_000, 250
TIMES = FIRST + np.arange(ROWS) * SECOND
_TIME = pa.timestamp("us", "UTC")


def written(folder: Path, times: Any = None, **layout: Any) -> Path:
    rows = {"event_id": [f"id{at}" for at in range(ROWS)],
            "event_time": pa.array(TIMES, _TIME) if times is None else times}  # fmt: skip
    how = {"max_rows_per_page": PAGE, "write_batch_size": PAGE, "write_page_index": True, "use_dictionary": False}
    pq.write_table(pa.table(rows), folder / "f", compression="none", **how | layout)
    return folder / "f"


def looked_up(file: Path, wanted: list[int], **more: Any) -> list[tuple[str, int]]:
    """Ids and rows that were found, of a file that this process has not seen."""
    pa.__dict__.pop("_clickjoin_pages", None)
    ids = pa.array([f"id{at}" for at in wanted])
    found = scan_by_key(str(file.parent), [file.name], ids, TimeRanges(TIMES[wanted]), KEYS, **more)
    times = found["event_time"].cast(pa.int64()).to_pylist()
    return list(zip(found["event_id"].to_pylist(), [(time - FIRST) // SECOND for time in times], strict=True))


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("others", [True, False])
def test_a_column_that_is_short_is_an_error(index: bool, others: bool, tmp_path: Path) -> None:
    """A page of times is said to hold fewer values: those after it would each stand in another row."""
    file = written(tmp_path, write_page_index=index)
    data = bytearray(file.read_bytes())
    begin = pq.read_metadata(file).row_group(0).column(1).data_page_offset
    data[data.index(b"\x15\xf4\x03\x15", begin) + 2] ^= 1  # 250 values of a page, now 186
    file.write_bytes(data)
    with pytest.raises(pa.ArrowInvalid, match=rf"{file}: event_time: 9936 values for 10000 rows"):
        looked_up(file, [100, 5000, 9000], others=others)
    with pytest.raises(pa.ArrowInvalid, match="values for"):
        parquet_rows.read_file(str(tmp_path), "f", pa.schema([KEYS.field("event_time")]))


def place_of_end(file: Path, row: int) -> int:
    """Where the page index of a file holds the time of a row, which is a page's least or greatest."""
    with pa.OSFile(str(file)) as opened:
        index = page_index._read(ByteRanges(opened))
    assert index is not None
    begin, length = index.columns["event_time"].places[0, 5:].tolist()
    return file.read_bytes().index(int(TIMES[row]).to_bytes(8, "little"), begin, begin + length)


@pytest.mark.parametrize("at", [0, 1_000, 9_750], ids=["first page", "a page", "last page"])
@pytest.mark.parametrize("end", [0, PAGE - 1], ids=["least", "greatest"])
def test_a_damaged_end_of_a_page_misses_no_row(at: int, end: int, tmp_path: Path) -> None:
    row, file = at + end, written(tmp_path)
    good, place = file.read_bytes(), place_of_end(file, row)
    for bit in range(64):
        damaged = bytearray(good)
        damaged[place + bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        assert looked_up(file, [row]) == [(f"id{row}", row)], bit


def test_ends_that_contradict_each_other_are_not_trusted(tmp_path: Path) -> None:
    """Where pages are in no order, nothing else tells."""
    order = np.random.default_rng(1).permutation(ROWS)
    file = written(tmp_path, pa.array(TIMES[order], _TIME))
    row = int(order[:PAGE].min())  # of the first page the least
    damaged = bytearray(file.read_bytes())
    damaged[place_of_end(file, row) + 7] ^= 1
    file.write_bytes(damaged)
    pa.__dict__.pop("_clickjoin_pages", None)
    ids = pa.array([f"id{at}" for at in range(ROWS)])
    found = scan_by_key(str(tmp_path), ["f"], ids, TimeRanges(TIMES[row : row + 1]), KEYS)
    assert found["event_id"].to_pylist() == [f"id{order.tolist().index(row)}"]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", None])
@pytest.mark.parametrize("index", [True, False])
def test_times_of_other_units(unit: str, zone: str | None, index: bool, tmp_path: Path) -> None:
    times = pa.array(TIMES, pa.timestamp("us", zone)).cast(pa.timestamp(unit, zone))
    file = written(tmp_path, times, write_page_index=index, row_group_size=ROWS if index else 500)
    assert looked_up(file, [3, 5_000]) == [("id3", 3), ("id5000", 5_000)]


def test_a_column_of_nanoseconds_is_not_read_by_pages(tmp_path: Path) -> None:
    landed = pa.array(TIMES * 1000, pa.timestamp("ns", "UTC"))
    rows = pa.table(
        {"event_id": [f"id{at}" for at in range(ROWS)], "event_time": pa.array(TIMES, _TIME), "landed_at": landed}
    )
    pq.write_table(rows, tmp_path / "f", max_rows_per_page=PAGE, write_batch_size=PAGE, write_page_index=True)
    schema = pa.schema([*KEYS, ("landed_at", _TIME)])
    found = scan_by_key(str(tmp_path), ["f"], pa.array(["id77"]), TimeRanges(TIMES[77:78]), schema)
    assert found["landed_at"].cast(pa.int64()).to_pylist() == [TIMES[77]]


@pytest.mark.parametrize("long", [False, True])
def test_of_long_rows_no_whole_row_group_is_read(long: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_index, "_LONG_ROW", 1 if long else 512)
    asked, values = list[int](), parquet_scan.values
    monkeypatch.setattr(parquet_scan, "values", lambda *args: asked.append(len(args[3])) or values(*args))
    every = list(range(0, ROWS, 100))
    assert looked_up(written(tmp_path), every) == [(f"id{at}", at) for at in every]
    assert bool(asked) == long
