"""Look-ups in data files that are damaged, or from elsewhere: right rows or an error, and no row is missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickjoin.kernel import parquet_rows
from clickjoin.kernel.parquet_rows import KEYS, TimeRanges, scan_by_key

SECOND = 1_000_000  # microseconds
FIRST, ROWS, GROUP, PAGE = 1_700_000_000 * SECOND, 10_000, 1_000, 250
TIMES = FIRST + np.arange(ROWS) * SECOND
_TIME = pa.timestamp("us", "UTC")


def written(folder: Path, times: Any = None, **layout: Any) -> Path:
    rows = {"event_id": [f"id{at}" for at in range(ROWS)],
            "event_time": pa.array(TIMES, _TIME) if times is None else times}  # fmt: skip
    how = {"row_group_size": GROUP, "max_rows_per_page": PAGE, "write_batch_size": PAGE, "use_dictionary": False}
    pq.write_table(pa.table(rows), folder / "f", compression="none", **how | layout)
    return folder / "f"


def looked_up(file: Path, wanted: list[int], **more: Any) -> list[tuple[str, int]]:
    """Ids and rows that were found."""
    ids = pa.array([f"id{at}" for at in wanted])
    found = scan_by_key(str(file.parent), [file.name], ids, TimeRanges(TIMES[wanted]), KEYS, **more)
    times = found["event_time"].cast(pa.int64()).to_pylist()
    return list(zip(found["event_id"].to_pylist(), [(time - FIRST) // SECOND for time in times], strict=True))


@pytest.mark.parametrize("others", [True, False])
def test_a_column_that_is_short_is_an_error(others: bool, tmp_path: Path) -> None:
    """A page of times is said to hold fewer values: those after it would each stand in another row."""
    file = written(tmp_path, row_group_size=ROWS)
    data = bytearray(file.read_bytes())
    begin = pq.read_metadata(file).row_group(0).column(1).data_page_offset
    data[data.index(b"\x15\xf4\x03\x15", begin) + 2] ^= 1  # 250 values of a page, now 186
    file.write_bytes(data)
    with pytest.raises(pa.ArrowInvalid, match=rf"{file}: event_time: 9936 values for 10000 rows"):
        looked_up(file, [100, 5000, 9000], others=others)
    with pytest.raises(pa.ArrowInvalid, match="values for"):
        parquet_rows.read_file(str(tmp_path), "f", pa.schema([KEYS.field("event_time")]))


def micros(row: int) -> bytes:
    return int(TIMES[row]).to_bytes(8, "little")


def place_of_ends(data: bytes, least: int, most: int) -> int:
    """Where a footer holds a row group's greatest time, after two bytes of a head, and then its least, after two more.

    Only this pair is what readers go by: another, for old readers, comes first.
    """
    return data.index(b"\x28\x08" + micros(most) + b"\x18\x08" + micros(least))


@pytest.mark.parametrize("first", [GROUP, 5 * GROUP])
@pytest.mark.parametrize("end", [0, GROUP - 1], ids=["least", "greatest"])
def test_a_damaged_end_of_a_row_group_between_others_misses_no_row(first: int, end: int, tmp_path: Path) -> None:
    file, last = written(tmp_path), first + GROUP - 1
    good, row = file.read_bytes(), first + end
    place = place_of_ends(good, first, last) + (2 if end else 12)
    for other in [int(TIMES[row]) ^ 1 << bit for bit in range(63)] + [-1 << 63, (1 << 63) - 1]:
        file.write_bytes(good[:place] + other.to_bytes(8, "little", signed=True) + good[place + 8 :])
        statistics = pq.read_metadata(file).row_group(first // GROUP).column(1).statistics
        assert (statistics.max_raw if end else statistics.min_raw) == other
        assert looked_up(file, [row]) == [(f"id{row}", row)], other


def test_ends_that_contradict_each_other_are_not_trusted(tmp_path: Path) -> None:
    """Where row groups are in no order, nothing else tells."""
    order = np.random.default_rng(1).permutation(ROWS)
    file = written(tmp_path, pa.array(TIMES[order], _TIME))
    least, most = int(order[:GROUP].min()), int(order[:GROUP].max())
    damaged = bytearray(file.read_bytes())
    damaged[place_of_ends(bytes(damaged), least, most) + 12 + 7] ^= 1
    file.write_bytes(damaged)
    ids = pa.array([f"id{at}" for at in range(ROWS)])
    found = scan_by_key(str(tmp_path), ["f"], ids, TimeRanges(TIMES[least : least + 1]), KEYS)
    assert found["event_id"].to_pylist() == [f"id{order.tolist().index(least)}"]


@pytest.mark.parametrize("end", ["least", "greatest"])
def test_a_row_group_with_one_end_only_is_read(end: str, tmp_path: Path) -> None:
    """Of one row group the other end has a number in the footer that no reader knows."""
    file = written(tmp_path)
    data = bytearray(file.read_bytes())
    place = place_of_ends(bytes(data), 0, GROUP - 1)
    # A field's head is its distance from the one before, and its type: to 6, the least's, or from 5 far beyond it.
    data[place + (10 if end == "greatest" else 0)] = 0x48 if end == "greatest" else 0x38
    if end == "least":  # what was the greatest is the least now, and what was the least comes after all fields
        data[place + 2 : place + 10], data[place + 10] = micros(0), 0x48
    file.write_bytes(data)
    statistics = pq.read_metadata(file).row_group(0).column(1).statistics
    assert not statistics.has_min_max
    assert looked_up(file, [0, 500, GROUP - 1]) == [("id0", 0), ("id500", 500), ("id999", 999)]
    known = parquet_rows.ends_of(pq.read_metadata(file), "event_time")
    assert known.least[0] < TIMES[0] < TIMES[-1] < known.most[0]


def test_row_groups_of_other_times_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, groups_of = list[list[int]](), parquet_rows.groups_of

    def noted(file: Any, groups: Any, names: list[str]) -> pa.Table:
        read.append(list(groups))
        return groups_of(file, groups, names)

    monkeypatch.setattr("clickjoin.kernel.parquet_rows.groups_of", noted)
    assert looked_up(written(tmp_path), [500, 5_500]) == [("id500", 500), ("id5500", 5500)]
    assert read == [[0, 5], [0, 5]]  # times, then ids
    read.clear()
    assert looked_up(written(tmp_path, write_statistics=False), [500]) == [("id500", 500)]
    assert read == [list(range(10)), [0]]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", None])
def test_times_of_other_units(unit: str, zone: str | None, tmp_path: Path) -> None:
    times = pa.array(TIMES, pa.timestamp("us", zone)).cast(pa.timestamp(unit, zone))
    assert looked_up(written(tmp_path, times), [3, 5_000]) == [("id3", 3), ("id5000", 5_000)]


def test_another_column_of_nanoseconds(tmp_path: Path) -> None:
    landed = pa.array(TIMES * 1000, pa.timestamp("ns", "UTC"))
    rows = pa.table(
        {"event_id": [f"id{at}" for at in range(ROWS)], "event_time": pa.array(TIMES, _TIME), "landed_at": landed}
    )
    pq.write_table(rows, tmp_path / "f", row_group_size=GROUP)
    schema = pa.schema([*KEYS, ("landed_at", _TIME)])
    found = scan_by_key(str(tmp_path), ["f"], pa.array(["id77"]), TimeRanges(TIMES[77:78]), schema)
    assert found["landed_at"].cast(pa.int64()).to_pylist() == [TIMES[77]]
