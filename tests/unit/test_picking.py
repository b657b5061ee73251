"""Rows picked out of files of many row groups, checked against all rows looked at one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.kernel import page_index, parquet_scan, wanted_ids
from clickjoin.kernel.byte_ranges import ByteRanges
from clickjoin.kernel.pages import Pages
from clickjoin.kernel.parquet_rows import of_batch
from clickjoin.kernel.parquet_scan import KEYS, TimeRanges, scan_by_key

SECOND = 1_000_000  # microseconds
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
        patch.setattr(wanted_ids, "ROWS_TO_HOLD", hold)
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
    """How a file is written: short pages and row groups, dictionaries, page formats; with a page index or as before."""
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
    st.sampled_from([1, 3, 128]),
    st.sampled_from([0.5, 1.0]),
)
def test_page_by_page_as_one_by_one(
    held: list[Any], starts: list[int], length: int, in_order: bool, layout: dict[str, Any], at_once: int, few: float
) -> None:
    held = sorted(held, key=lambda row: (row[1] is None, row[1])) if in_order else held
    known, times = [f"id{number}" for number in range(0, 30, 2)], np.unique(starts)
    columns = {"event_id": pa.array([None if number is None else f"id{number}" for number, _ in held], pa.string()),
               "event_time": pa.array([time for _, time in held], _TIME),
               "payload": pa.array([f"p{at}" if at % 3 else None for at in range(len(held))], pa.string()),
               "at": pa.array(range(len(held)), pa.int64())}  # fmt: skip
    schema = pa.schema([*SCHEMA, ("at", pa.int64())])
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_index, "_LONG", 0)
        patch.setattr(parquet_scan, "_PAGES_AT_ONCE", at_once)
        patch.setattr(parquet_scan, "_FEW_PAGES", few)
        pq.write_table(pa.table(columns), Path(folder) / "one.parquet", **layout)
        found = scan_by_key(folder, ["one.parquet"], pa.array(known), TimeRanges(times, length), schema)
        with pa.OSFile(f"{folder}/one.parquet") as opened:
            has_pages = page_index.page_index(ByteRanges(opened), folder, "event_time", schema.names) is not None
    assert has_pages == (layout["write_page_index"] and layout["write_statistics"] and bool(held))
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


@pytest.fixture
def two_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], Path]:
    """Writes a file of two pages, and flips a bit of what its page index says of the second page of ids."""
    monkeypatch.setattr(page_index, "_LONG", 0)
    monkeypatch.setattr(parquet_scan, "_FEW_PAGES", 1.0)

    def write(at: int, bit: int) -> Path:
        rows, file = pa.table({"event_id": list("abcd"), "event_time": pa.array([1, 2, 3, 4], _TIME)}), tmp_path / "f"
        pq.write_table(rows, file, max_rows_per_page=2, write_batch_size=1, write_page_index=True, use_dictionary=False)
        index = known_pages(file, "as written")
        assert index is not None
        data = bytearray(file.read_bytes())
        # A list of two: a head of two bytes, and seven of each, which are heads, offset, bytes, first row, an end.
        data[int(index.columns["event_id"].places[0, 3]) + 9 + at] ^= bit
        file.write_bytes(data)
        return file

    return write


def known_pages(file: Path, name: str) -> page_index.PageIndex | None:
    with pa.OSFile(str(file)) as opened:
        return page_index.page_index(ByteRanges(opened), name, "event_time", KEYS.names)


@pytest.mark.parametrize("at", [1, 3, 5], ids=["offset", "bytes", "first row"])
def test_where_a_page_index_does_not_fit_pyarrow_reads(two_pages: Callable[[int, int], Path], at: int) -> None:
    file = two_pages(at, 4)
    assert known_pages(file, f"damaged {at}") is None
    found = scan_by_key(str(file.parent), ["f"], pa.array(["b", "c"]), TimeRanges(np.array([2, 3])), KEYS)
    assert found["event_id"].to_pylist() == ["b", "c"]


@pytest.mark.parametrize(("time", "known"), [(2, "b"), (4, "d")], ids=["fewer values", "more values"])
def test_pages_that_are_not_as_their_index_says_are_not_trusted(
    time: int, known: str, two_pages: Callable[[int, int], Path]
) -> None:
    """The index fits its chunk, but the second page is said to begin a row later than it does."""
    file = two_pages(5, 2)
    index = known_pages(file, "one row later")
    assert index is not None
    with pa.OSFile(str(file)) as opened:
        assert index.pages(ByteRanges(opened), "event_id").rows.tolist() == [0, 3, 4]
    found = scan_by_key(str(file.parent), ["f"], pa.array(["b", "d"]), TimeRanges(np.array([time])), KEYS)
    assert found["event_id"].to_pylist() == [known]


def test_files_of_short_row_groups_and_other_columns_are_not_read_by_pages(tmp_path: Path) -> None:
    def known(more: dict[str, pa.Array], wanted: list[str], **layout: Any) -> bool:
        columns = {"event_id": pa.array(map(str, range(20_000))), "event_time": pa.array(range(20_000), _TIME), **more}
        layout = {"write_page_index": True, "max_rows_per_page": 512, **layout}
        pq.write_table(pa.table(columns), tmp_path / "f", **layout)
        with pa.OSFile(str(tmp_path / "f")) as opened:
            return page_index.page_index(ByteRanges(opened), f"{more}{layout}", "event_time", wanted) is not None

    other = {"share": pa.array([0.5] * 20_000)}
    assert known({}, KEYS.names)
    assert known(other, KEYS.names)
    assert known({"payload": pa.array(["x" * 200_000, *["y"] * 19_999])}, [*KEYS.names, "payload"])
    assert not known(other, [*KEYS.names, "share"])
    assert not known({"tags": pa.array([["x"]] * 20_000)}, KEYS.names)
    assert not known({}, KEYS.names, row_group_size=4_096)
    assert not known({}, KEYS.names, coerce_timestamps="ms", allow_truncated_timestamps=True)


def test_each_row_group_has_its_own_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"event_id": pa.array(map(str, range(40))), "event_time": pa.array(range(40), _TIME),
               "payload": pa.array([f"p{at // 5}" for at in range(40)])}  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "f", row_group_size=10, max_rows_per_page=2, write_page_index=True)
    monkeypatch.setattr(page_index, "_LONG", 0)
    monkeypatch.setattr(parquet_scan, "_FEW_PAGES", 1.0)
    wanted = [1, 7, 12, 28, 39]
    when = TimeRanges(np.array(wanted, np.int64))
    found = scan_by_key(str(tmp_path), ["f"], pa.array(map(str, wanted)), when, SCHEMA)
    assert found["payload"].to_pylist() == [f"p{at // 5}" for at in wanted]


@pytest.mark.parametrize("wanted", [range(1, 40, 8), range(1, 40, 3)], ids=["few pages", "most pages"])
def test_few_pages_are_read_one_by_one(wanted: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"event_id": pa.array(map(str, range(40))), "event_time": pa.array(range(0, 40 * SECOND, SECOND), _TIME)}
    pq.write_table(pa.table(columns), tmp_path / "f", max_rows_per_page=4, write_batch_size=1, write_page_index=True)
    monkeypatch.setattr(page_index, "_LONG", 0)
    asked, values = list[int](), parquet_scan.values
    monkeypatch.setattr(parquet_scan, "values", lambda *args: asked.append(len(args[3])) or values(*args))
    when = TimeRanges(np.array(wanted) * SECOND)
    found = scan_by_key(str(tmp_path), ["f"], pa.array(map(str, wanted)), when, KEYS)
    assert found["event_id"].to_pylist() == list(map(str, wanted))
    assert asked[:2] == ([20, 5] if len(wanted) == 5 else [])  # of twenty rows the times, of five the ids


def test_what_is_known_of_pages_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"event_id": map(str, range(100)), "event_time": pa.array(range(100), _TIME)})
    pq.write_table(rows, tmp_path / "f", max_rows_per_page=2, write_page_index=True)
    monkeypatch.setattr(page_index, "_LONG", 0)
    monkeypatch.setattr(page_index, "_KEPT", 10_000)
    monkeypatch.setitem(pa.__dict__, "_clickjoin_pages", {})
    for number in range(100):
        with pa.OSFile(str(tmp_path / "f")) as opened:
            assert page_index.page_index(ByteRanges(opened), str(number), "event_time", KEYS.names)
    assert 1 < len(pa.__dict__["_clickjoin_pages"]) <= 32


def _write(path: Path, held: list[tuple[int, int]], size: int) -> None:
    columns = [[f"id{number}" for number, _ in held], [time for _, time in held], [f"p{at}" for at in range(len(held))]]
    pq.write_table(pa.table(columns, schema=pa.schema(list(SCHEMA)[:3])), path, row_group_size=size)


def _micros(rows: pa.Table) -> list[int]:
    return rows["event_time"].cast(pa.int64()).to_pylist()


def test_pages_are_kept_in_eight_bytes_each() -> None:
    sizes, rows = np.array([10, 20, 5, 7]), np.array([0, 3, 5, 9, 12])
    pages = Pages(np.array([4, 100]), [3, 1], sizes, rows)
    assert pages.starts.tolist() == [4, 14, 34, 100]
    assert (pages.sizes.tolist(), pages.rows.tolist()) == (sizes.tolist(), rows.tolist())
    assert (pages.groups.tolist(), len(pages)) == ([0, 0, 0, 1], 4)
    with pytest.raises(OverflowError):
        Pages(np.array([4]), [1], np.array([10]), np.array([0, 1 << 32]))
