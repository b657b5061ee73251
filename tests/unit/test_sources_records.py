"""From bytes to records: every kind of bad input is put aside with its bytes, and no neighbour suffers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.kernel.parse import fields, lines
from clickjoin.kernel.parse.lines import REASONS, Block, whole_lines
from clickjoin.kernel.parse.times import micros_of
from clickjoin.kernel.read_lines import SCHEMA
from clickjoin.model.errors import SourceError
from clickjoin.model.ids import embedded_micros, uuid7_micros
from clickjoin.sources.port import RECORDS_DDL
from tests.unit.sources_bench import BASE, Feed, event, events, numbers

GOOD = event(1)


def read(folder: Path, data: bytes, name: str = "a.jsonl", **more: Any) -> list[dict[str, Any]]:
    """All records of a file with these bytes."""
    (folder / name).write_bytes(data)
    feed = Feed(folder, name)
    return [row | {"source_partition": ""} for row in feed.read(feed.plan().splits, **more)]


def line(**fields: Any) -> bytes:
    """One line."""
    return json.dumps(fields).encode() + b"\n"


def test_columns_are_those_of_the_port() -> None:
    names = [part.split()[0].strip("`") for part in RECORDS_DDL.split(", ")]
    assert SCHEMA.names == names


def test_good_record(tmp_path: Path) -> None:
    data = b'  {"id": "h:1:1574562822638561", "extra": [1, {"a": null}], "z": 1e400} \t\r\n'
    (row,) = read(tmp_path, data)
    assert row["event_id"] == "h:1:1574562822638561"
    assert row["event_time"].isoformat() == "2019-11-24T02:33:42.638561+00:00"
    assert row["payload"] == data.strip().decode()
    assert (row["offset"], row["length"], row["path"]) == (0, len(data), str(tmp_path / "a.jsonl"))
    assert [row[name] for name in ("reason", "detail", "raw", "part", "primary_id", "primary_time")] == [None] * 6


ID = f"h:1:{BASE}"
BAD = [
    (b'{"id":"h:1:15745628', "broken-json", {}),
    (b'{"id":"h:1:15745628}', "broken-json", {}),
    (b'{"id":"%s"}{"id":"%s"}' % (ID.encode(), ID.encode()), "broken-json", {}),
    (b'{"id":"%s"} {' % ID.encode(), "broken-json", {}),
    (b'{"id":"%s","id":"%s"}' % (ID.encode(), ID.encode()), "broken-json", {}),
    (b'{"id":"%s","id":1}' % ID.encode(), "broken-json", {}),
    (b'{"id":"\\ud800"}', "broken-json", {}),
    (b'{"id":"a\x01"}', "broken-json", {}),
    (b"garbage", "broken-json", {}),
    (b"\x0b", "broken-json", {}),
    (b"[1]", "not-an-object", {}),
    (b"null", "not-an-object", {}),
    (b'"{}"', "not-an-object", {}),
    (b'{"id":"\xff\xfe"}', "invalid-utf8", {}),
    (b'{"id":"%s","x":"\xc3"}' % ID.encode(), "invalid-utf8", {}),
    (b'{"id":"%s","x":"\0"}' % ID.encode(), "nul-byte", {}),
    (b"\0\0\0\0", "nul-byte", {}),
    (b'{"id":"%s","x":"%s"}' % (ID.encode(), b"y" * 600), "too-long", {"max_record": 500}),
    (b"{}", "missing-id", {}),
    (b'{"id":null}', "missing-id", {}),
    (b'{"id":""}', "missing-id", {}),
    (b'{"id":" \\t"}', "missing-id", {}),
    (b'{"id":true}', "wrong-type", {}),
    (b'{"id":1.5}', "wrong-type", {}),
    (b'{"id":-1e-3}', "wrong-type", {}),
    (b'{"id":9007199254740992.0}', "wrong-type", {}),
    (b'{"id":1e999}', "wrong-type", {}),
    (b'{"id":{"a":1}}', "wrong-type", {}),
    (b'{"id":["%s"]}' % ID.encode(), "wrong-type", {}),
    (b'{"id":"h:1:1%s"}' % (b"x" * 1100), "id-too-long", {}),
    (b'{"id":"abc"}', "no-time-in-id", {}),
    (b'{"id":7}', "no-time-in-id", {}),
    (b'{"id":"%s"}' % ID.encode(), "no-time-in-id", {"event_time": "uuid7"}),
    (b'{"id":"h:1:1000"}', "impossible-time", {}),
    (b'{"id":"h:1:9999999999999999"}', "impossible-time", {}),
    (b'{"id":"a"}', "bad-time", {"event_time": "t"}),
    (b'{"id":"a","t":""}', "bad-time", {"event_time": "t"}),
    (b'{"id":"a","t":"yesterday"}', "bad-time", {"event_time": "t"}),
    (b'{"id":"a","t":"2019-02-30T00:00:00Z"}', "bad-time", {"event_time": "t"}),
    (b'{"id":"a","t":false}', "wrong-type", {"event_time": "t"}),
    (b'{"id":"a","t":99999999999999999999999}', "bad-time", {"event_time": "t"}),
    (b'{"id":"a","t":0}', "impossible-time", {"event_time": "t"}),
    (b'{"id":"%s"}' % ID.encode(), "bad-primary-id", {"primary_id": "q"}),
    (b'{"id":"%s","q":""}' % ID.encode(), "bad-primary-id", {"primary_id": "q"}),
    (b'{"id":"%s","q":"abc"}' % ID.encode(), "bad-primary-id", {"primary_id": "q", "primary_time": "embedded"}),
    (b'{"id":"%s","q":[]}' % ID.encode(), "wrong-type", {"primary_id": "q"}),
    (b'{"id":"%s","q":"h:1:5"}' % ID.encode(), "impossible-time", {"primary_id": "q", "primary_time": "embedded"}),
]


@pytest.mark.parametrize(("bad", "reason", "fields"), BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_bad_record_between_good_ones(
    tmp_path: Path, bad: bytes, reason: str, fields: dict[str, Any], ending: bytes
) -> None:
    good = line(id=ID, q=ID, t="2019-11-24T02:33:42Z")
    if fields.get("event_time") == "uuid7":
        good = line(id="016e9b0a-1b2c-7def-8abc-0123456789ab")
    rows = read(tmp_path, good + bad + ending + good, **fields)
    first, middle, last = rows
    assert (first["reason"], last["reason"]) == (None, None)
    assert (middle["reason"], middle["raw"], middle["part"]) == (reason, bad + ending, 0)
    assert (middle["offset"], middle["length"]) == (len(good), len(bad + ending))
    assert middle["detail"].count("\n") == 0
    assert (middle["event_id"], middle["event_time"], middle["payload"]) == (None, None, None)
    assert reason in REASONS


def test_line_longer_than_the_limit_is_kept_in_parts(tmp_path: Path) -> None:
    huge = b'{"id":"' + b"x" * 9_000_000 + b'"}\n'
    rows = read(tmp_path, GOOD + huge + event(2), size=100_000, max_record=1_000_000)
    parts = rows[1:-1]
    assert numbers(rows) == [1, 2]
    assert [row["part"] for row in parts] == [0, 1, 2]
    assert {row["reason"] for row in parts} == {"too-long"}
    assert b"".join(row["raw"] for row in parts) == huge
    assert [row["offset"] for row in parts] == [len(GOOD) + at for at in (0, 4 << 20, 8 << 20)]
    assert sum(row["length"] for row in parts) == len(huge)
    whole = read(tmp_path, GOOD + huge + event(2), max_record=1_000_000)
    assert whole == rows


def test_hundred_megabytes_in_one_line(tmp_path: Path) -> None:
    rows = read(tmp_path, GOOD + b"y" * 100_000_000 + b"\n" + event(2), tasks=4)
    assert numbers(rows) == [1, 2]
    assert sum(row["length"] for row in rows[1:-1]) == 100_000_001
    assert max(row["length"] for row in rows) == 4 << 20


def test_field_that_changes_its_type(tmp_path: Path) -> None:
    data = b"".join(
        [line(id=f"a{at}", t="2019-11-24T02:33:42Z") for at in range(100)]
        + [line(id=at, t=1574562822) for at in range(100)]
        + [
            line(id=at if at % 2 else str(at), t=1574562822.5 if at % 3 else "2019-11-24T02:33:42.5")
            for at in range(999)
        ]
        + [line(id=2**80, t=1574562822000)]
    )
    rows = read(tmp_path, data, event_time="t")
    assert all(row["reason"] is None for row in rows)
    assert [row["event_id"] for row in rows[:100]] == [f"a{at}" for at in range(100)]
    assert [row["event_id"] for row in rows[200:]] == [*map(str, range(999)), str(2**80)]
    assert {row["event_time"].timestamp() for row in rows[:200]} == {1574562822.0}
    assert {row["event_time"].timestamp() for row in rows[200:1199]} == {1574562822.5}


def test_byte_order_mark_and_blank_lines(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + GOOD + b"\n \t\r\n" + event(2) + b"\r\n" + event(3)
    rows = read(tmp_path, data)
    assert numbers(rows) == [1, 2, 3]
    assert (rows[0]["offset"], rows[0]["length"]) == (0, 3 + len(GOOD))
    assert rows[0]["payload"].startswith("{")
    rows = read(tmp_path, b"\xef\xbb\xbf{\n" + GOOD, "b.jsonl")
    assert [row["raw"] for row in rows] == [b"\xef\xbb\xbf{\n", None]


@pytest.mark.parametrize("tasks", [1, 3, 8])
def test_characters_across_the_edges_of_chunks_and_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: int
) -> None:
    monkeypatch.setattr("clickjoin.kernel.chunk.SMALL", 0)
    monkeypatch.setattr("clickjoin.kernel.chunk.PIECE", 64)
    data = b"".join(json.dumps({"id": f"h:1:{BASE + at}", "x": "🛍é€" * (at % 7)}, ensure_ascii=False).encode() + b"\n"
                    for at in range(300))  # fmt: skip
    for size in (97, 1000, 1 << 20):
        rows = read(tmp_path, data, tasks=tasks, size=size)
        assert numbers(rows) == list(range(300))
        assert [json.loads(row["payload"])["x"] for row in rows] == ["🛍é€" * (at % 7) for at in range(300)]


texts = st.one_of(
    st.integers(0, 10**6).map(lambda at: event(at).strip()),
    st.sampled_from([bad for bad, _, fields in BAD if not fields]),
    st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")),
    st.sampled_from(
        [b"", b" ", b"\r", b'{"id":12}', b'{"id":"h:1:1574562822000000","n":[' + b"[" * 60 + b"]" * 61 + b"}"]
    ),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(texts, st.sampled_from([b"\n", b"\r\n"])), min_size=1, max_size=40),
    st.integers(1, 6), st.integers(16, 300), st.sampled_from([60, 10**6]), st.booleans(),
)  # fmt: skip
def test_any_lines_in_any_chunks(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[bytes, bytes]],
                                 tasks: int, size: int, longest: int, mark: bool) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("any")
    raw = [text + end for text, end in pairs]
    raw[0] = b"\xef\xbb\xbf" + raw[0] if mark else raw[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clickjoin.kernel.chunk.SMALL", 0)
        patch.setattr("clickjoin.kernel.chunk.PIECE", 1)
        rows = read(folder, b"".join(raw), tasks=tasks, size=size, max_record=longest)
        once = read(folder, b"".join(raw), max_record=longest)
    assert rows == once
    expected, offset = [], 0
    for at, text in enumerate(raw):
        bare = text.removeprefix(b"\xef\xbb\xbf") if at == 0 else text
        if bare.strip(b" \t\r\n"):
            expected.append((offset, text, bare.strip(b" \t\r\n")))
        offset += len(text)
    assert [(row["offset"], row["length"]) for row in rows] == [(at, len(text)) for at, text, _ in expected]
    for row, (_, text, bare) in zip(rows, expected, strict=True):
        if row["reason"] is None:
            assert row["payload"].encode() == bare
            assert str(json.loads(bare)["id"]) == row["event_id"]
        else:
            assert row["raw"] == text


def test_long_lines_in_any_blocks() -> None:
    data = b"a\n" + b"b" * 50 + b"\n" + b"c\n" + b"d" * 9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "RAW_PART", 8)
        for size in range(1, len(data) + 1):
            cuts = [data[at : at + size] for at in range(0, len(data), size)]
            blocks = list(whole_lines(cuts, 100, 20))
            assert b"".join(block.data for block in blocks) == data
            parts = [block for block in blocks if block.part is not None]
            assert [block.part for block in parts] in ([], list(range(7)))
            assert all(block.data[:-1].count(b"\n") == 0 for block in parts)
            at = 100
            for block in blocks:
                assert block.offset == at
                at += len(block.data)


def test_rewritten_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(events(0, 100))
    feed = Feed(tmp_path)
    chunks = feed.source.chunks(feed.plan().splits)
    path.write_bytes(events(0, 50) + events(500, 550))
    from clickjoin.kernel.read_lines import read_chunk
    from tests.unit.sources_bench import spec

    with pytest.raises(SourceError, match=r"a\.jsonl: the bytes before offset .* are not the planned ones"):
        list(read_chunk(chunks[0], spec()))
    path.write_bytes(events(0, 100))
    reading = read_chunk(chunks[0], spec(), 1000)
    next(reading)
    path.write_bytes(events(0, 20))
    with pytest.raises(SourceError, match="Run the batch again"):
        list(reading)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(b"{}\n" * 99), "the file is gzip, by its first bytes, but is not named *.gz"),
        ("{}\n".encode("utf-16"), "UTF-16"),
        (b"Obj\x01\0\xff\n", "Avro"),
    ],
)
def test_a_file_that_is_no_text_is_named(tmp_path: Path, data: bytes, words: str) -> None:
    rows = read(tmp_path, data + b"\n")
    assert rows
    assert all(row["reason"] for row in rows)
    assert any(words in row["detail"] for row in rows)


ids = st.one_of(
    st.text(max_size=40), st.from_regex(r"\A[a-z0-9.]{0,9}:[0-9]{0,9}:[0-9]{0,20}\Z"), st.uuids().map(str),
    st.from_regex(r"\A[0-9a-fA-F]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89abAB][0-9a-f]{3}-[0-9a-f]{12}\Z"),
)  # fmt: skip


@given(st.lists(ids, max_size=20))
def test_times_in_ids_are_those_of_the_rule(texts: list[str]) -> None:
    array = pa.array(texts, pa.string())
    for vector, rule in ((fields.embedded, embedded_micros), (fields.uuid7, uuid7_micros)):
        micros, known = vector(array)
        assert [int(at) if fine else None for at, fine in zip(micros, known, strict=True)] == [
            rule(text) for text in texts
        ]


@pytest.mark.parametrize(("value", "micros"), [
    ("2019-11-24T02:33:42Z", BASE), ("2019-11-24T02:33:42.000001Z", BASE + 1), ("2019-11-24 02:33:42", BASE),
    ("2019-11-24T03:33:42+01:00", BASE), ("2019-11-24T03:33:42+0100", BASE), ("2019-11-24T03:33:42+01", BASE),
    ("2019-11-24T02:33:42.0000019Z", BASE + 1), ("2019-11-24", BASE - 9222 * 10**6), (1574562822, BASE),
    (1574562822000, BASE), (BASE, BASE), (BASE * 1000 + 999, BASE), (1574562822.0, BASE),
    (1574562822.25, BASE + 250_000),
    ("1574562822", BASE), ("1574562822.25", BASE + 250_000), (str(BASE * 1000), BASE), (-1, -1_000_000),
    ("1.574562822E9", BASE), ("1574562822e3", BASE), ("-1e0", -1_000_000), ("2019-11-24T02:33:42z", BASE),
    ("2019-11-24 02:33:42 UTC", BASE), ("2019-11-24 02:33:42.000001 UTC", BASE + 1), (" 2019-11-24T02:33:42Z ", BASE),
    (" 1574562822 ", BASE), ("2019-11-23T24:00:00Z", BASE - 9222 * 10**6), ("2019-11-23 24:00", BASE - 9222 * 10**6),
    ("2019-11-23T24:00:01Z", None), ("UTC", None), ("1e", None), ("1e400", None),
    ("", None), ("x", None), (None, None), ("2019-13-01", None), (float("nan"), None), (1e300, None),
    ("99999999999999999999", None), ("2019-11-24T25:00:00Z", None),
])  # fmt: skip
def test_times_in_columns(value: Any, micros: int | None) -> None:
    for extra in ([], ["2019-11-24T02:33:42Z"], ["nonsense"]):
        same = [value] if extra and not isinstance(value, str) else [value, *extra]
        found, known = micros_of(pa.array(same, pa.string() if value is None else None))
        assert (int(found[0]) if known[0] else None) == micros
    assert value is None or np.all(micros_of(pa.array([value, value]))[1] == (micros is not None))


def test_blank_block() -> None:
    assert len(lines.split(Block(0, b"\n\r\n  \n")).end) == 0


ODD = [2**63, -(2**63) - 1, 9_999_999_999_999_999_999, "9223372036854775808", 10**25, "--5", "9" * 5000, "٣٤"]


@pytest.mark.parametrize(
    ("time", "reason"), [*((time, "bad-time") for time in ODD), ("9100000000000000000", "impossible-time")]
)
def test_a_number_that_is_no_time_stops_nothing(tmp_path: Path, time: Any, reason: str) -> None:
    """Such a record stopped all that came after it: the parser called itself without end."""
    lines = [{"id": "a", "ts": time}, {"id": "b", "ts": BASE // 10**6}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    feed = Feed(tmp_path)
    rows = feed.read(feed.plan().splits, event_time="ts")
    assert [(row["event_id"], row["reason"]) for row in rows] == [(None, reason), ("b", None)]


WHOLE = [
    (b"5.0", "5"), (b"1e3", "1000"), (b"-0.0", "0"), (b"12.50e1", "125"), (b"9007199254740991.0", "9007199254740991"),
    (b"5", "5"), (b'"5.0"', "5.0"), (b"9007199254740993", "9007199254740993"),
    (b"18446744073709551616", "18446744073709551616"),
]  # fmt: skip


@pytest.mark.parametrize("apart", [False, True])
def test_a_number_that_is_whole_is_an_id(tmp_path: Path, apart: bool) -> None:
    """Also where integers that no float holds stand beside it, or it stands alone in its file."""
    data = [b'{"id":%s,"t":%d}\n' % (text, 1_574_562_822 + n) for n, (text, _) in enumerate(WHOLE)]
    files = data if apart else [b"".join(data * 40)]
    found = [
        row["event_id"]
        for number, text in enumerate(files)
        for row in sorted(
            read(tmp_path, text, name=f"{number}.jsonl", event_time="t"), key=lambda one: int(one["offset"])
        )
    ]
    assert found == [name for _, name in WHOLE] * (1 if apart else 40)


def test_floats_that_lack_digits_or_are_not_whole_are_named(tmp_path: Path) -> None:
    rows = read(tmp_path, b'{"id":9007199254740992.0,"t":1}\n{"id":2.5,"t":1}\n', event_time="t")
    assert [row["detail"] for row in rows] == [
        "`id` is a number that a float holds with digits missing; write text",
        "`id` is a number with a fraction, but an id is a string or a whole number",
    ]
