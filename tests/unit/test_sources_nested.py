"""Ids and times inside of records: by path, of several columns, and in forms of their own."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.config.streams import TimeColumn
from clickjoin.kernel.parse.json_lines import JsonParser, by_hand
from clickjoin.kernel.parse.lines import Block, split
from clickjoin.model.ids import TimeForm
from tests.unit.sources_bench import BASE, Feed

ID = f"h:1:{BASE}"


def read(folder: Path, *records: Any, name: str = "a.jsonl", **fields: Any) -> list[dict[str, Any]]:
    lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    feed = Feed(folder, "*")
    return feed.read(feed.plan().splits, **fields)


def ids(rows: list[dict[str, Any]]) -> list[str | None]:
    return [row["event_id"] for row in rows]


@pytest.mark.parametrize(
    ("path", "record"),
    [
        ("meta.id", {"meta": {"id": ID, "more": [1, {"x": 2}]}}),
        ("user.ids[1]", {"user": {"ids": ["no", ID]}}),
        ("users[0].id", {"users": [{"id": ID}, {"id": "no"}]}),
        ("`a.b`.c", {"a.b": {"c": ID}, "a": {"b": {"c": "no"}}}),
        ("`a.b`", {"a.b": ID}),
        ("rows[0][1]", {"rows": [["no", ID]]}),
    ],
)
def test_an_id_at_a_path(tmp_path: Path, path: str, record: Any) -> None:
    assert ids(read(tmp_path, record, event_id=path)) == [ID]


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"meta": None},
        {"meta": "text"},
        {"meta": []},
        {"meta": {}},
        {"meta": {"ids": []}},
        {"meta": {"ids": {"0": ID}}},
    ],
)
def test_nothing_at_a_path_is_a_missing_id(tmp_path: Path, record: Any) -> None:
    good = {"meta": {"ids": [ID]}}
    rows = read(tmp_path, good, record, good, event_id="meta.ids[0]")
    assert ids(rows) == [ID, None, ID]
    assert (rows[1]["reason"], "`meta.ids[0]` is missing" in rows[1]["detail"]) == ("missing-id", True)


def test_a_key_on_the_path_that_is_named_twice(tmp_path: Path) -> None:
    rows = read(tmp_path, f'{{"meta": {{"id": "{ID}", "id": "x"}}}}', event_id="meta.id")
    assert (rows[0]["reason"], "`id` is named twice" in rows[0]["detail"]) == ("broken-json", True)


SCALAR = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4)
KEYS = st.sampled_from(["m", "i", "t", "x"])
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


@settings(deadline=None, max_examples=300)
@given(st.lists(st.dictionaries(KEYS, VALUE, max_size=4), min_size=1, max_size=40))
def test_arrow_finds_what_python_finds(records: list[dict[str, Any]]) -> None:
    names = {"m.i": True, "m.t[1]": False, "t[0].i": False, "x": True}
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    lines = split(Block(0, data))
    segments, bad = JsonParser(names).parse(lines)
    by_line = [by_hand(lines.text, [row], names) for row in range(len(lines.end))]
    known = {row: why for found in by_line for row, why in found[1].items()}
    assert bad == known
    fast, slow = (
        {
            int(row): {name: str(segment.columns[name][at].as_py()) for name in names}
            for segment in some
            for at, row in enumerate(segment.rows)
        }
        for some in (segments, [segment for found in by_line for segment in found[0]])
    )
    assert fast == slow


def test_an_id_beside_a_fractional_time_in_one_array(tmp_path: Path) -> None:
    """Arrow has one type for all elements: as floats, an integer id would change with what stands beside it."""
    fields = {"event_id": ("row[0]",), "event_time": "row[1]"}
    whole, half = [12_345_678_901_234, BASE // 10**6], [5, BASE // 10**6 + 0.5]
    alone = ids(read(tmp_path, {"row": whole}, name="a.jsonl", **fields))
    assert alone == ["12345678901234"]
    for name, rows in (("b.jsonl", (whole, half)), ("c.jsonl", (half, whole))):
        (tmp_path / "a.jsonl").unlink(missing_ok=True)
        (tmp_path / "b.jsonl").unlink(missing_ok=True)
        found = read(tmp_path, *({"row": row} for row in rows), name=name, **fields)
        assert set(ids(found)) == {"12345678901234", "5"}
    (tmp_path / "c.jsonl").unlink()
    [odd] = read(tmp_path, {"row": [1.5, half[1]]}, name="d.jsonl", **fields)
    assert odd["reason"] == "wrong-type"


def test_an_id_of_several_columns(tmp_path: Path) -> None:
    records = [
        {"host": "h", "pid": 1, "seq": BASE},
        {"host": "h:1", "pid": 2, "seq": BASE},
        {"host": "h", "pid": "1%3A2", "seq": BASE},
        {"host": "h", "pid": None, "seq": BASE},
        {"host": "h", "pid": 1.5, "seq": BASE},
    ]
    rows = read(tmp_path, *records, event_id=("host", "pid", "seq"), event_time="seq")
    assert ids(rows) == [f"h:1:{BASE}", f"h%3A1:2:{BASE}", f"h:1%253A2:{BASE}", None, None]
    assert [row["reason"] for row in rows[3:]] == ["missing-id", "wrong-type"]
    assert "`pid` is missing" in rows[3]["detail"]


def test_an_id_of_several_columns_may_hold_its_time(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {"at": {"host": "10.0.0.1", "pid": 7}, "us": BASE}, event_id=("at.host", "at.pid", "us"))
    assert (row["event_id"], row["event_time"].timestamp()) == (f"10.0.0.1:7:{BASE}", BASE / 1e6)


part = st.text(alphabet=st.sampled_from(":%3A25x"), min_size=1, max_size=4)


@settings(deadline=None)
@given(st.lists(st.tuples(part, part), min_size=2, max_size=30, unique=True))
def test_ids_agree_only_if_all_columns_do(pairs: list[tuple[str, str]]) -> None:
    import pyarrow as pa

    from clickjoin.kernel.parse.fields import understand
    from tests.unit.sources_bench import spec

    columns = {name: pa.array(values) for name, values in zip("ab", zip(*pairs, strict=True), strict=True)}
    times = pa.array([BASE] * len(pairs))
    found = understand({**columns, "t": times}, len(pairs), spec(event_id=("a", "b"), event_time="t"))
    assert len(set(found.event_id.to_pylist())) == len(pairs)


def test_times_in_a_form_and_a_zone(tmp_path: Path) -> None:
    form = TimeForm(("%d/%m/%Y %H:%M:%S",), "Europe/Berlin")
    texts = ["24/11/2019 03:27:02", " 01/07/2019 00:00:00", "2019-11-24 03:27:02", None, "31/02/2019 00:00:00", 5]
    records = [{"id": str(at), "ts": text} for at, text in enumerate(texts)]
    rows = read(tmp_path, *records, event_time="ts", event_form=form)
    zone = ZoneInfo("Europe/Berlin")
    assert [row["event_time"] for row in rows[:2]] == [
        datetime(2019, 11, 24, 3, 27, 2, tzinfo=zone),
        datetime(2019, 7, 1, tzinfo=zone),
    ]
    assert [row["reason"] for row in rows[2:]] == ["bad-time"] * 4
    assert rows[2]["detail"] == (
        "`ts` is missing or no time; write the form %d/%m/%Y %H:%M:%S (got '2019-11-24 03:27:02')"
    )
    assert "(got" not in rows[3]["detail"]


def test_times_with_a_zone_of_their_own_and_fractions(tmp_path: Path) -> None:
    form = TimeForm(("%d/%b/%Y:%H:%M:%S.%f %z",), "UTC")
    (row,) = read(tmp_path, {"id": "x", "ts": "24/Nov/2019:03:27:02.25 +0100"}, event_time="ts", event_form=form)
    assert row["event_time"].isoformat() == "2019-11-24T02:27:02.250000+00:00"


def test_times_in_several_forms_and_with_parts_left_out(tmp_path: Path) -> None:
    chosen = TimeColumn(column="ts", format=["%d/%m/%Y %H:%M:%S.%f", "iso"], zone="Europe/Berlin")
    texts = ["24/11/2019 03:27:02.5", "24/11/2019 03:27:02", "24/11/2019 03:27", "2019-11-24 03:27:02", 1574562422]
    records = [{"id": str(at), "ts": text} for at, text in enumerate([*texts, "24.11.2019"])]
    rows = read(tmp_path, *records, event_time="ts", event_form=chosen.form)
    assert [row["event_time"].isoformat()[14:] for row in rows[:5]] == [
        "27:02.500000+00:00", "27:02+00:00", "27:00+00:00", "27:02+00:00", "27:02+00:00",
    ]  # fmt: skip
    assert {row["event_time"].hour for row in rows[:5]} == {2}
    assert (rows[5]["reason"], "or ISO 8601 (got '24.11.2019')" in rows[5]["detail"]) == ("bad-time", True)


def test_iso_in_a_zone_of_its_own(tmp_path: Path) -> None:
    form = TimeColumn(column="ts", zone="Europe/Berlin").form
    rows = read(tmp_path, {"id": "a", "ts": "2019-07-01T12:00:00"}, {"id": "b", "ts": "2019-07-01T12:00:00Z"},
                event_time="ts", event_form=form)  # fmt: skip
    assert [row["event_time"].hour for row in rows] == [10, 12]


def test_hours_that_clocks_show_twice_and_never(tmp_path: Path) -> None:
    form = TimeForm(("%Y-%m-%d %H:%M",), "Europe/Berlin")
    records = [{"id": "twice", "ts": "2019-10-27 02:30"}, {"id": "never", "ts": "2019-03-31 02:30"}]
    rows = read(tmp_path, *records, event_time="ts", event_form=form)
    assert [row["event_time"].strftime("%H:%M") for row in rows] == ["00:30", "01:30"]


def test_a_value_that_is_no_time_is_shown(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {"id": "x", "ts": "yesterday"}, event_time="ts")
    assert row["detail"] == "`ts` is missing or no time; write ISO 8601 or a number since 1970 (got 'yesterday')"
