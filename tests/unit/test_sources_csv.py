"""CSV with a header line."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.model.where import Condition, Where
from tests.unit.sources_bench import BASE, Feed, age, numbers


def read(folder: Path, data: bytes, name: str = "a.csv", **more: Any) -> list[dict[str, Any]]:
    """All records of a file with these bytes."""
    (folder / name).write_bytes(data)
    feed = Feed(folder, name)
    return feed.read(feed.plan().splits, **more)


def good(at: int) -> bytes:
    """One good line of three columns."""
    return b'h:1:%d,"x, ""%d""",\n' % (BASE + at, at)


def test_values_become_a_json_object(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbfid,"a ""b""",\xc3\xa9\r\nh:1:%d,"1,\t\\ ""x""",\r\n' % BASE
    (row,) = read(tmp_path, data)
    assert json.loads(row["payload"]) == {"id": f"h:1:{BASE}", 'a "b"': '1,\t\\ "x"', "é": ""}
    header = data.index(b"\n") + 1
    assert (row["offset"], row["length"]) == (header, len(data) - header)


@pytest.mark.parametrize(
    "bad",
    [
        b"only", b"a,b", b"a,b,c,d", b'a,"b,c', b'a"b,"c,d', b'a,b,"c', b"a\rb,c,d", b'"a\rb",c,d', b'""",b,c', b'"',
        b'a,"b "c" d",e', b'"a"b,c,d', b'a,"b"" "c",d',
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_bad_line_between_good_ones(tmp_path: Path, bad: bytes, ending: bytes) -> None:
    data = b"id,x,y\n" + good(1) + bad + ending + good(2)
    rows = read(tmp_path, data)
    assert numbers(rows) == [1, 2]
    assert [(row["reason"], row["raw"]) for row in rows if row["reason"]] == [("bad-csv", bad + ending)]
    assert read(tmp_path, b"id,x,y\n" + good(1) + good(2) + bad + ending)[2]["reason"] == "bad-csv"


@pytest.mark.parametrize("blank", [b"\n", b"\r\n \t\n", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_blank_lines_before_the_header(tmp_path: Path, blank: bytes, name: str) -> None:
    data = blank + b"id,x,y\r\n" + good(1) + b"a\n"
    rows = read(tmp_path, gzip.compress(data) if name.endswith(".gz") else data, name)
    assert numbers(rows) == [1]
    assert [row["raw"] for row in rows if row["reason"]] == [b"a\n"]
    assert rows[0]["offset"] == data.index(b"h:1:")


def test_a_file_that_grows_after_a_blank_line(tmp_path: Path) -> None:
    feed, log = Feed(tmp_path, "a.csv"), tmp_path / "a.csv"
    found = []
    for data in (b"\n", b"id,x,y\n", good(1), good(2)):
        with log.open("ab") as file:
            file.write(data)
        found += feed.read(feed.plan().splits)
    assert numbers(found) == [1, 2]
    assert len(found) == 2


def test_a_header_in_the_middle_is_no_event(tmp_path: Path) -> None:
    rows = read(tmp_path, b"id,x,y\n" + good(1) + b'id,"x",y\n' + good(2) + b"id,x,z\n")
    assert numbers(rows) == [1, 2]
    assert [(row["reason"], "names the columns again" in row["detail"]) for row in rows if row["reason"]] == [
        ("bad-csv", True),
        ("no-time-in-id", False),
    ]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [(b",x,y", "missing-id"), (b"h:1:5,x,y", "impossible-time"), (b"\0,,", "nul-byte"), (b"\xff,,", "invalid-utf8")],
)
def test_other_reasons(tmp_path: Path, bad: bytes, reason: str) -> None:
    rows = read(tmp_path, b"id,x,y\n" + good(1) + bad + b"\n" + good(2))
    assert [row["reason"] for row in rows] == [None, reason, None]


@pytest.mark.parametrize("header", [b"id,id,y\n", b"\xff,x,y\n", b'id,"x,y\n', b"x" * 2_000_000 + b"\n"])
def test_bad_header_puts_every_line_aside(tmp_path: Path, header: bytes) -> None:
    rows = read(tmp_path, header + good(1) + good(2))
    assert [(row["reason"], row["raw"]) for row in rows[-2:]] == [("bad-csv", good(1)), ("bad-csv", good(2))]


@pytest.mark.parametrize("end", [b"\r\n", b"\r", b"\r\n" + good(1000)])
@pytest.mark.parametrize(
    ("header", "more"), [(b"id,x,y", {}), (b'\xef\xbb\xbfid,"x",y', {"multiline": True}), (b"id,\xe9,y", {})]
)
def test_lines_that_end_in_cr_alone(tmp_path: Path, header: bytes, more: dict[str, Any], end: bytes) -> None:
    """All is the first line, which is on record; once, however many tasks read the file."""
    line = b"\r".join([header, *(good(at).rstrip() for at in range(20))])
    (tmp_path / "a.csv").write_bytes(line + end)
    age(tmp_path / "a.csv", 7200)
    feed = Feed(tmp_path, "a.csv", **more)
    first, *others = feed.read(feed.plan().splits, tasks=3)
    first_line = (line + end).removesuffix(good(1000))
    assert (first["reason"], first["offset"], first["raw"]) == ("bad-csv", 0, first_line)
    assert "end in CR alone" in first["detail"]
    assert [row["raw"] for row in others] == [good(1000)] * end.endswith(good(1000))
    assert feed.read(feed.plan().splits) == []


def test_lines_that_end_in_cr_alone_in_parts(tmp_path: Path) -> None:
    """Of a packed file, and of one whose first line is longer than any header, all is on record once."""
    data = b"id,x,y\r" + b"a,b,c\r" * 300_000
    for name, whole in (("a.csv.gz", gzip.compress(data[:1000])), ("b.csv", data)):
        (tmp_path / name).write_bytes(whole)
        age(tmp_path / name, 7200)
    feed = Feed(tmp_path, "*.csv*")
    rows = feed.read(feed.plan().splits, tasks=2)
    raw = {name: b"".join(row["raw"] for row in rows if row["path"].endswith(name)) for name in ("gz", "b.csv")}
    assert raw == {"gz": data[:1000], "b.csv": data}


def test_names_that_hold_a_cr(tmp_path: Path) -> None:
    rows = read(tmp_path, b'id,"x\ry",z\r\r\n' + good(1))
    assert [json.loads(row["payload"]).keys() for row in rows] == [{"id", "x\ry", "z"}]


@pytest.mark.parametrize("first", [b"a,x,y\n", good(0), b"\n1,1,2\r\n", b"\xef\xbb\xbf\xff,x,y\n"])
def test_header_without_the_id(tmp_path: Path, first: bytes) -> None:
    """It may be a record, of a file without a header, and is on record once, however many tasks read the file."""
    (tmp_path / "a.csv").write_bytes(first + good(1) + good(2))
    feed = Feed(tmp_path, "a.csv")
    rows = feed.read(feed.plan().splits, tasks=3)
    assert b"".join(row["raw"] for row in rows) == first + good(1) + good(2)
    assert (rows[0]["reason"], rows[0]["offset"]) == ("bad-csv", 0)
    assert {row["reason"] for row in rows[1:]} <= {"missing-id", "bad-csv"}


def test_header_of_a_file_of_which_nothing_is_taken(tmp_path: Path) -> None:
    where = Where((Condition("kind", ("click",)),))
    rows = read(tmp_path, b"kind,x,y\na,b,c\n", where=where)
    assert [(row["reason"], row["detail"]) for row in rows] == [("passed-over", "1")]
    assert read(tmp_path, b"id,x,y", "b.csv") == []


def test_growing_and_packed_and_by_format(tmp_path: Path) -> None:
    feed = Feed(tmp_path, "*.csv*")
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,x,y\n" + b"".join(map(good, range(30))))
    assert feed.step() == list(range(30))
    with path.open("ab") as file:
        file.write(b"".join(map(good, range(30, 40))))
    path.with_name("a.csv.1.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert feed.step() == list(range(30, 40))
    (tmp_path / "plain.log").write_bytes(b"id,x,y\n" + good(7))
    assert Feed(tmp_path, "*.log", format="csv").step() == [7]


def test_a_damaged_gzip_is_one_bad_record(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(b"id,x,y\n" + b"".join(map(good, range(300)))))
    whole[len(whole) // 2] ^= 255
    (tmp_path / "a.csv.gz").write_bytes(whole)
    age(tmp_path / "a.csv.gz", 60)
    feed = Feed(tmp_path, "*.gz")
    assert [row["reason"] for row in feed.read(feed.plan().splits)] == ["broken-file"]
    assert feed.plan().splits == ()


def test_header_alone_is_no_record(tmp_path: Path) -> None:
    assert read(tmp_path, b"id,x,y\n") == []


cells = st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"]), max_size=8)
plain = st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1, max_size=30)
noise = st.lists(st.tuples(st.integers(0, 30), st.text(st.sampled_from('a",\r '), max_size=9)), max_size=4)


@settings(max_examples=150, deadline=None)
@given(plain, noise, st.integers(1, 5), st.integers(16, 300))
def test_any_lines_in_any_chunks(tmp_path_factory: pytest.TempPathFactory, table: list[list[str]],
                                 garbage: list[tuple[int, str]], tasks: int, size: int) -> None:  # fmt: skip
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([[f"h:1:{BASE + at}", *row] for at, row in enumerate(table)])
    lines = out.getvalue().encode().split(b"\n")[:-1]
    bad = {f"{at}!{text}".encode() for at, text in garbage}
    for at, text in garbage:
        lines.insert(at, f"{at}!{text}".encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clickjoin.kernel.chunk.SMALL", 0)
        patch.setattr("clickjoin.kernel.chunk.PIECE", 1)
        rows = read(tmp_path_factory.mktemp("any"), b"id,x,y\n" + b"\n".join(lines) + b"\n", tasks=tasks, size=size)
    assert numbers(rows) == list(range(len(table)))
    values = [json.loads(row["payload"]) for row in rows if row["reason"] is None]
    assert [[value["x"], value["y"]] for value in values] == table
    assert {row["raw"].rstrip(b"\n") for row in rows if row["reason"]} == bad
    offsets, at = [], 7
    for line in lines:
        offsets.append((at, len(line) + 1))
        at += len(line) + 1
    assert [(row["offset"], row["length"]) for row in rows] == offsets
