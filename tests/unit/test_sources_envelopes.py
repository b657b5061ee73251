"""Lines that hold their records in an array: each element is a record, and rows tile the bytes of the file."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.config import Pipeline
from clickjoin.kernel.parse.json_scan import elements
from clickjoin.kernel.parse.lines import RAW_PART
from tests.unit.sources_bench import Feed, event, numbers
from tests.unit.test_validate import pipeline

PATH = ("detail", "Records")


def envelope(*records: Any, **beside: Any) -> bytes:
    """One line."""
    return json.dumps({"at": [1], "detail": {"Records": records, **beside}}).encode() + b"\n"


def one(number: int, **more: Any) -> dict[str, Any]:
    """One good record."""
    return json.loads(event(number)) | more


def read(folder: Path, data: bytes, name: str = "a.jsonl") -> list[dict[str, Any]]:
    """All records of a file with these bytes."""
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    feed = Feed(folder, name)
    return feed.read(feed.plan().splits, records=PATH)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_each_element_is_a_record(tmp_path: Path, name: str) -> None:
    data = envelope(one(0), one(1, text="é, ]}{[\n"), one(2)) + envelope(one(3)) + event(4) + b"\n" + envelope()
    rows = read(tmp_path, data, name)
    assert numbers(rows) == [0, 1, 2, 3, 4]
    assert json.loads(rows[1]["payload"])["text"] == "é, ]}{[\n"
    last = rows.pop()  # what holds no record is a line of its own, and none
    assert (last["reason"], last["raw"].strip()) == ("missing-id", envelope().strip())
    places = [(row["offset"], row["offset"] + row["length"]) for row in [*rows, last]]
    blank = data.index(b"\n\n") + 1
    edges = [(low, high) for low, high in places if low != blank]
    assert [low for low, _ in edges] == [0, *(high + (high == blank) for _, high in edges[:-1])]
    assert edges[-1][1] == len(data)


def test_a_byte_order_mark_is_no_part_of_a_record(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + envelope(one(0), one(1))
    rows = read(tmp_path, data)
    assert numbers(rows) == [0, 1]
    assert [row["offset"] for row in rows] == [0, data.index(json.dumps(one(1)).encode())]
    assert sum(row["length"] for row in rows) == len(data)
    assert numbers(read(tmp_path, b"\xef\xbb\xbf" + event(2), "b.jsonl")) == [2]


def test_a_bad_element_costs_no_other(tmp_path: Path) -> None:
    long = {"text": "x" * (RAW_PART + 99)}
    rows = read(
        tmp_path, envelope(one(0), 7, {"id": None}, long, one(1)) + b'{"detail": {"Records": [{"id"\n' + event(2)
    )
    assert numbers(rows) == [0, 1, 2]
    bad = [(row["reason"], row["part"], row["raw"][:9]) for row in rows if row["reason"]]
    assert bad == [
        ("not-an-object", 0, b"7\n"), ("missing-id", 0, b'{"id": nu'), ("missing-id", 0, b'{"text": '),
        ("missing-id", 1, b"x" * 9), ("broken-json", 0, b'{"detail"'),
    ]  # fmt: skip
    edges = sorted((row["offset"], row["offset"] + row["length"]) for row in rows)
    assert all(high == low for (_, high), (low, _) in pairwise(edges))


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.floats(allow_nan=False)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


@given(st.lists(values, max_size=5), st.dictionaries(st.text(), values, max_size=3), st.booleans(), st.booleans())
def test_elements_are_found_where_they_lie(held: list[Any], beside: dict[str, Any], ascii_: bool, spaced: bool) -> None:
    record = {**beside, "detail": {**beside, "Ré": held}, "z": beside}
    line = json.dumps(record, ensure_ascii=ascii_, indent=1 if spaced else None)
    data = line.encode("utf-8", "surrogatepass")
    if not ascii_ or "\\u00e9" not in line:  # keys are compared as they stand
        found = [
            json.loads(data[low:high].decode("utf-8", "surrogatepass"))
            for low, high in elements(data, ("detail", "Ré"))
        ]
        assert found == held


@pytest.mark.parametrize(
    "line",
    [b"", b"[]", b"{", b'{"Records": 1}', b'{"Records": [1, }', b'{"Records": [1]', b'{"Records": [1], "Records": [2]}',
     b'{"a": {"Records": [1]}}', b"{" * 100_000, b'{"Records": ' + b"[" * 100_000],
)  # fmt: skip
def test_what_is_no_envelope(line: bytes) -> None:
    found = elements(line, ("Records",))
    assert found == [] or line == b'{"Records": [1]'


def test_an_element_is_no_identity(tmp_path: Path) -> None:
    whole = pipeline(tmp_path).model_dump(exclude_defaults=True)
    whole["foreign"]["event_id"] = "Records[0].id"
    with pytest.raises(ValueError, match=r"Records\[0\]\.id names one element .* source\.records: Records and id"):
        Pipeline.model_validate(whole)
