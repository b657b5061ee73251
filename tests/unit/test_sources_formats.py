"""Files of other formats: .zst, .bz2, Parquet, and CSV with another separator or without a header."""

from __future__ import annotations

import bz2
import json
import math
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickjoin.config.streams import TimeColumn
from clickjoin.kernel.packed import BrokenFile, unpack
from tests.unit.sources_bench import BASE, Feed, age, append, event, events, numbers


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def parquet(path: Path, rows: list[dict[str, Any]], **more: Any) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path, **more)


PACKERS = [("zst", zstd), ("bz2", bz2.compress)]


@pytest.mark.parametrize(("suffix", "pack"), PACKERS)
def test_packed_files_are_read_whole_and_again_if_they_change(tmp_path: Path, suffix: str, pack: Any) -> None:
    feed, packed = Feed(tmp_path), tmp_path / f"x.jsonl.{suffix}"
    packed.write_bytes(pack(events(0, 20)) + pack(events(20, 30)))
    plan = feed.plan()
    assert plan.splits[0].payload["end"] == -1
    assert numbers(feed.read(plan.splits, tasks=4, size=100)) == list(range(30))
    packed.write_bytes(pack(events(0, 40)))
    assert feed.step() == list(range(40))


@pytest.mark.parametrize(("suffix", "pack"), PACKERS)
def test_a_log_that_is_rotated_and_packed_goes_on(feed: Feed, log: Path, suffix: str, pack: Any) -> None:
    append(log, events(0, 50))
    feed.step()
    append(log, events(50, 60))
    log.with_name(f"a.jsonl.1.{suffix}").write_bytes(pack(log.read_bytes()))
    log.unlink()
    assert feed.step() == list(range(50, 60))
    assert [position.payload["state"] for position in feed.positions.values()] == ["done"]


@pytest.mark.parametrize(("suffix", "pack"), PACKERS)
def test_packed_files_being_written_are_waited_for(tmp_path: Path, suffix: str, pack: Any) -> None:
    feed, packed = Feed(tmp_path), tmp_path / f"x.jsonl.{suffix}"
    whole = pack(events(0, 500))
    packed.write_bytes(whole[:-20])
    plan = feed.plan()
    assert (plan.splits, plan.backlog_bytes > 0) == ((), True)
    packed.write_bytes(whole)
    assert feed.step() == list(range(500))


@pytest.mark.parametrize(("suffix", "pack"), PACKERS)
def test_damaged_files_are_read_as_far_as_they_go(tmp_path: Path, suffix: str, pack: Any) -> None:
    feed, packed = Feed(tmp_path), tmp_path / f"x.jsonl.{suffix}"
    lines = b"".join(event(number, salt=os.urandom(40).hex()) for number in range(30_000))
    packed.write_bytes(pack(lines)[:-1000])
    age(packed, 60)
    splits = feed.plan().splits
    rows, again = feed.read(splits), feed.read(splits, size=999)
    good = numbers(rows)
    assert good == list(range(len(good)))
    assert len(good) > 10_000
    assert rows == again  # whatever the size of the blocks
    assert [row["reason"] for row in rows if row["reason"]][-1] == "broken-file"


def test_rows_of_parquet_are_records(tmp_path: Path) -> None:
    feed = Feed(tmp_path, "*.parquet")
    rows = [{"id": f"h:1:{BASE + number}", "n": number, "meta": {"tags": ["a", str(number)]}} for number in range(9000)]
    parquet(tmp_path / "x.parquet", rows, row_group_size=1000)
    splits = feed.plan().splits
    found = feed.read(splits)
    assert numbers(found) == list(range(9000))
    assert [json.loads(row["payload"]) for row in found] == rows
    assert found == feed.read(splits, size=1000)
    assert feed.plan().splits == ()
    assert len({row["offset"] for row in found}) == 9000


def test_parquet_without_its_footer_is_waited_for(tmp_path: Path) -> None:
    feed, path = Feed(tmp_path, "*.parquet"), tmp_path / "x.parquet"
    parquet(path, [{"id": f"h:1:{BASE}"}])
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    age(path, 600)
    plan = feed.plan()
    assert (plan.splits, plan.backlog_bytes) == ((), len(whole) - 4)
    assert [(problem.kind, problem.path) for problem in plan.problems] == [("unfinished-file", str(path))]
    path.write_bytes(whole)
    assert feed.step() == [0]


def test_parquet_that_nobody_will_finish_is_one_bad_record(tmp_path: Path) -> None:
    feed, path = Feed(tmp_path, "*.parquet"), tmp_path / "x.parquet"
    parquet(path, [{"id": f"h:1:{BASE}"}])
    path.write_bytes(path.read_bytes()[:-4])
    age(path, 4000)
    assert [row["reason"] for row in feed.read(feed.plan().splits)] == ["broken-file"]


def test_values_of_parquet_as_json(tmp_path: Path) -> None:
    at = datetime(2019, 11, 24, 2, 27, 2, 500, UTC)
    table = pa.table({
        "id": pa.array(["x"]),
        "at": pa.array([at], pa.timestamp("ns", "Europe/Berlin")),
        "bare": pa.array([at.replace(tzinfo=None)], pa.timestamp("ms")).cast(pa.timestamp("us")),
        "day": pa.array([date(2019, 11, 24)]),
        "price": pa.array([Decimal("3.50")]),
        "ratio": pa.array([math.nan]),
        "raw": pa.array([b"\xff\x00"]),
        "text": pa.array([b"caf\xc3\xa9"]),
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "none": pa.nulls(1),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "x.parquet")
    with (tmp_path / "x.parquet").open("rb") as file:
        (line,) = b"".join(unpack(file.fileno())).splitlines()
    assert json.loads(line) == {
        "id": "x", "at": "2019-11-24T02:27:02.000500Z", "bare": "2019-11-24T02:27:02Z", "day": "2019-11-24",
        "price": "3.50", "ratio": None, "raw": "base64:/wA=", "text": "café", "map": {"k": 1}, "none": None,
    }  # fmt: skip


@pytest.mark.parametrize(("zone", "hours"), [("Europe/Berlin", 1), ("UTC", 0), (None, 0)])
def test_times_of_parquet_without_a_zone_are_in_that_of_the_file(tmp_path: Path, zone: str | None, hours: int) -> None:
    """Those that have one stay what they are; by whole columns, and row by row where a value is of no plain type."""
    at = datetime(2019, 11, 5, 12, tzinfo=UTC)
    for name, more in (("a", {}), ("b", {"price": [Decimal("1.5")]})):
        columns = {"id": ["x"], "bare": pa.array([at.replace(tzinfo=None)], pa.timestamp("us")), "at": [at], **more}
        columns["in"] = pa.array([{"bare": at.replace(tzinfo=None)}], pa.struct([("bare", pa.timestamp("us"))]))
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    for column, moved in (("bare", hours), ("in.bare", hours), ("at", 0)):
        form = TimeColumn(column=column, zone=zone).form if zone else None
        feed = Feed(tmp_path, "*.parquet")
        rows = feed.read(feed.plan().splits, event_time=column, event_form=form, bare_times=True)
        assert [row["event_time"] for row in rows] == [at - timedelta(hours=moved)] * 2


def test_a_damaged_file_with_times_without_a_zone_is_one_bad_record(tmp_path: Path) -> None:
    feed, path = Feed(tmp_path, "*.parquet"), tmp_path / "x.parquet"
    parquet(path, [{"id": f"h:1:{BASE}"}])
    path.write_bytes(path.read_bytes()[:-4])
    age(path, 4000)
    assert [row["reason"] for row in feed.read(feed.plan().splits, bare_times=True)] == ["broken-file"]


def test_a_disk_that_fails_is_no_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.zst"
    path.write_bytes(zstd(events(0, 5000)))
    real, reads = os.pread, []

    def failing(fd: int, length: int, offset: int) -> bytes:
        reads.append(offset)
        if length > 4:
            raise OSError(5, "Input/output error")
        return real(fd, length, offset)

    monkeypatch.setattr(os, "pread", failing)
    with path.open("rb") as file, pytest.raises(OSError, match="Input/output error") as caught:
        list(unpack(file.fileno()))
    assert not isinstance(caught.value, BrokenFile)


def test_csv_with_another_separator(tmp_path: Path) -> None:
    feed = Feed(tmp_path, "*", separator=";")
    (tmp_path / "a.csv").write_text(f'id;note\nh:1:{BASE};"a;b,c"\nh:1:{BASE + 1};x;y\n')
    rows = feed.read(feed.plan().splits)
    assert json.loads(rows[0]["payload"]) == {"id": f"h:1:{BASE}", "note": "a;b,c"}
    assert rows[1]["reason"] == "bad-csv"
    assert rows[1]["detail"].endswith("quote fields that hold ';'")


def test_csv_without_a_header(tmp_path: Path) -> None:
    feed = Feed(tmp_path, "*", separator="\t", columns=("id", "meta.note"), format="csv")
    (tmp_path / "a.log").write_text(f"h:1:{BASE}\tone\n")
    assert numbers(feed.read(feed.plan().splits)) == [0]
    append(tmp_path / "a.log", f"h:1:{BASE + 1}\ttwo\n".encode())
    (row,) = feed.read(feed.plan().splits)
    assert json.loads(row["payload"]) == {"id": f"h:1:{BASE + 1}", "meta.note": "two"}


def test_a_path_names_a_column_of_csv_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"user.id,a[b\nh:1:{BASE},h:1:{BASE + 1}\n")
    for path, number in (("user.id", 0), ("`a[b`", 1)):
        feed = Feed(tmp_path, "*")
        assert feed.step(event_id=path) == [number]


def lines_of(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        return b"".join(unpack(file.fileno())).splitlines()


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pa.array([300_000_000_000_000_000], pa.timestamp("us")), "11476-08-15 05:20:00.000000"),
        (pa.array([300_000_000_000_000], pa.timestamp("ms", "Europe/Berlin")), "11476-08-15 05:20:00.000000Z"),
        (pa.array([2**31 - 2], pa.date32()), "<value out of range: 2147483646>"),
        (pa.array([0], pa.timestamp("us", "+0530")), "1970-01-01T00:00:00Z"),
        (pa.array([0], pa.timestamp("us", "Foo/Bar")), "1970-01-01T00:00:00Z"),
        (pa.array([[(b"\xff", 1)]], pa.map_(pa.binary(), pa.int64())), {"base64:/w==": 1}),
        (pa.array([[(date(2019, 1, 2), 1)]], pa.map_(pa.date32(), pa.int64())), {"2019-01-02": 1}),
        (pa.array([b"\x01" * 16], pa.uuid()), "01010101-0101-0101-0101-010101010101"),
        (pa.array([b"//79"]), "//79"),
        (pa.array([b"\xff\xfe\xfd"]), "base64://79"),
        (pa.array([b"base64://79"]), "base64:YmFzZTY0Oi8vNzk="),
    ],
)
def test_odd_values_of_parquet(tmp_path: Path, column: Any, shown: Any) -> None:
    table = pa.table({"id": pa.array(["a"] * 3), "odd": pa.chunked_array([column, pa.nulls(2, column.type)])})
    pq.write_table(table, tmp_path / "x.parquet")
    found = [json.loads(line) for line in lines_of(tmp_path / "x.parquet")]
    assert found == [{"id": "a", "odd": shown}] + [{"id": "a", "odd": None}] * 2


def test_a_row_that_is_no_text_is_one_bad_record(tmp_path: Path) -> None:
    feed = Feed(tmp_path, "*.parquet")
    ids = pa.array([f"h:1:{BASE + number}" for number in range(20)])
    text = pa.array([b"fine"] * 10 + [b"\xff"] + [b"fine"] * 9).view(pa.binary())
    broken = pa.StringArray.from_buffers(20, *text.buffers()[1:])
    pq.write_table(pa.table({"id": ids, "text": broken}), tmp_path / "x.parquet")
    rows = feed.read(feed.plan().splits)
    assert numbers(rows) == [number for number in range(20) if number != 10]
    (bad,) = (row for row in rows if row["reason"])
    assert (bad["reason"], b"UnicodeDecodeError" in bad["raw"]) == ("broken-json", True)


@pytest.mark.parametrize(("suffix", "pack"), PACKERS)
def test_what_follows_the_content_costs_none_of_it(tmp_path: Path, suffix: str, pack: Any) -> None:
    feed, packed = Feed(tmp_path), tmp_path / f"x.jsonl.{suffix}"
    packed.write_bytes(pack(events(0, 1000)) + b"\n")
    age(packed, 60)
    rows = feed.read(feed.plan().splits)
    assert numbers(rows) == list(range(1000))
    assert [row["reason"] for row in rows if row["reason"]] == ["broken-file"]


def test_frames_of_zst_that_hold_nothing(tmp_path: Path) -> None:
    feed, skipped = Feed(tmp_path), b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    (tmp_path / "x.jsonl.zst").write_bytes(skipped + zstd(events(0, 10)) + skipped + zstd(events(10, 20)))
    assert feed.step() == list(range(20))


def test_empty_members_and_padding_of_bz2(tmp_path: Path) -> None:
    feed, empty = Feed(tmp_path), bz2.compress(b"")
    whole = empty + bz2.compress(events(0, 10)) + empty + b"\0\0" + bz2.compress(events(10, 20)) + empty + b"\0"
    (tmp_path / "x.jsonl.bz2").write_bytes(whole)
    assert feed.step() == list(range(20))


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.decimal128(20, 0), pa.decimal128(12, 4)])
def test_ids_that_are_doubles_or_decimals_are_whole_numbers(tmp_path: Path, kind: pa.DataType) -> None:
    """Also in objects. One that is not whole is no id."""
    is_whole = pa.types.is_decimal(kind) and not kind.scale
    numbers = [Decimal(7), Decimal(12000), None, Decimal(9) if is_whole else Decimal("2.5")]
    values = numbers if pa.types.is_decimal(kind) else [None if one is None else float(one) for one in numbers]
    column = pa.array(values, kind)
    inner = pa.StructArray.from_arrays([column], ["id"])
    pq.write_table(pa.table({"id": column, "in": inner, "t": [BASE] * 4}), tmp_path / "x.parquet")
    for name in ("id", "in.id"):
        feed = Feed(tmp_path, "*.parquet")
        rows = feed.read(feed.plan().splits, event_id=(name,), event_time="t")
        good = [row["event_id"] for row in rows if row["reason"] is None]
        assert good == ["7", "12000", "9"][: 3 if is_whole else 2]
        bad = {row["reason"]: row["detail"] for row in rows if row["reason"]}
        assert "missing-id" in bad
        assert is_whole or f"`{name}` is a number with a fraction" in bad["wrong-type"]
