"""Rows as JSON by whole columns are the bytes that a row at a time makes, or are left to that."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.kernel import parquet_lines
from clickjoin.kernel.parquet_lines import plain_lines

TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
TIMES = st.none() | st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(lambda at: at.replace(tzinfo=UTC))
OBJECTS = st.none() | st.dictionaries(st.text("ab", max_size=2), st.integers() | st.text("x{}\n", max_size=3)).map(
    lambda found: json.dumps(found)
) | st.sampled_from(["no object", "{", "{}", "", "[1]", '{"a":\n 1}', "{\n}}"])  # fmt: skip


@given(st.lists(st.fixed_dictionaries({
    "id": TEXTS, "at": TIMES, "n": st.none() | st.integers(-(2**63), 2**63 - 1), "yes": st.none() | st.booleans(),
    "day": st.none() | st.dates(date(1, 1, 1), date(9999, 12, 31)), "record": OBJECTS, "nothing": st.none(),
}), min_size=1, max_size=4))  # fmt: skip
def test_the_same_bytes(rows: list[dict[str, Any]]) -> None:
    schema = pa.schema([
        ("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("record", pa.string()), ("n", pa.int64()),
        ("yes", pa.bool_()), ("day", pa.date32()), ("nothing", pa.null()),
    ])  # fmt: skip
    batch = pa.RecordBatch.from_pylist(rows, schema)
    whole = parquet_lines._row_by_row(batch, ["record"])
    assert parquet_lines.lines_of(batch, ["record"]) == whole
    fast = plain_lines(batch, ["record"])
    assert fast is None or fast == whole
    assert all(line.endswith(b"\n") and b"\n" not in line[:-1] for line in whole)


def test_plain_rows_are_made_by_columns() -> None:
    batch = pa.RecordBatch.from_pydict({"record": ['{"a": 1}', None], "id": ["x", "ÿ"], "n": [1, None]})
    expected = [b'{"id":"x","n":1,"record":{"a": 1}}\n', '{"id":"ÿ","n":null,"record":null}\n'.encode()]
    assert plain_lines(batch, ["record"]) == expected


@pytest.mark.parametrize(
    "column", [["a\nb"], ['a"b'], ["a\\b"], [1.5], [{"a": 1}], [[1]], [b"x"]], ids=lambda column: repr(column[0])
)
def test_what_takes_more_is_left_alone(column: list[Any]) -> None:
    assert plain_lines(pa.RecordBatch.from_pydict({"v": column}), []) is None
    assert plain_lines(pa.RecordBatch.from_pydict({"v": ["no object"]}), ["v"]) is None
    far = pa.array([300_000_000_000_000_000], pa.timestamp("us", "UTC"))
    assert plain_lines(pa.RecordBatch.from_pydict({"v": far}), []) is None
    broken = pa.StringArray.from_buffers(1, *pa.array([b"\xff"]).buffers()[1:])
    assert plain_lines(pa.RecordBatch.from_pydict({"v": broken}), []) is None
