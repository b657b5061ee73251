"""Arrow's way and Python's read the same columns from every record, however odd."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clickjoin.kernel.typed_columns.columns import Reader, type_of
from clickjoin.kernel.typed_columns.convert import convert
from clickjoin.model.field_path import TypedColumn
from tests.unit.test_typed_columns import TYPES, column

PATHS = ["a", "b", "m.a", "m.b.a", "m", "l[0]", "l[1]", "l[0].a", "`a.b`"]
integers = st.integers(-(10**4), 10**4) | st.sampled_from([
    2**31, 2**31 - 1, -(2**31) - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**11, 10**14, 10**17, 10**39,
    73_000_000_000_001, 1_772_366_400_123, 0, -1,
])  # fmt: skip
floats = st.floats(-1e4, 1e4).map(repr) | st.sampled_from([
    "1.0", "-0", "-0.0", "1e2", "1E-2", "3.505", "3.500", "0.5", "1e999", "1e-999", "1e400", "NaN", "Infinity",
    "-Infinity", "9007199254740993.0", "12.0000000000000000001", "0.3000000000000000444", "1.7976931348623159e308",
    "3.5e38", "1700000000.5", "73000000000000.5", "123.4567890123456789", "1e-400000000", "0e99999999999",
])  # fmt: skip
texts = st.sampled_from([
    "", " ", "12", " 12 ", "+5", "-0", "007", "3.50", ".5", "5.", "1e3", "abc", "true", "FALSE", "1", "0", "NaN", "inf",
    "2026-03-01", "2026-03-01T12:00:00Z", "2026-03-01 12:00:00.123456789", "20260301", "2026-13-01", "0000-01-01",
    "9999-12-31T23:59:59Z", "é\n\"\\", "\x00", "\u2028", "\U0001f600", "9" * 19, "9" * 40, "0" * 30 + "1", "1_0", "٣",
    "2026-03-01T12:00:00+25:00", "12:00", "2026-W10-1", "-" * 3, "1772366400", "1772366400.25", "0x10",
]) | st.text(max_size=5)  # fmt: skip
words = texts.map(json.dumps) | texts.filter(lambda text: "\x00" not in text).map(
    lambda text: json.dumps(text, ensure_ascii=False)
)
flags = st.sampled_from(["true", "false", "null", "null"])
odd = st.sampled_from([r'"\ud800"', r'"\ud83d\ude00"', "{}", "[]", '{"a": 1}', '["x", 1]', '{"a": {"a": 1}}', "[[]]"])
PALETTES = [integers.map(str), integers.map(str) | floats, floats, words, flags, words | flags | floats, odd | words]


def obj(values: st.SearchStrategy[str], keys: list[str]) -> st.SearchStrategy[str]:
    """Objects whose keys come in any order, now and then twice, or not at all."""
    pair = st.tuples(st.sampled_from(keys), values).map(lambda pair: f"{json.dumps(pair[0])}:{pair[1]}")
    return st.lists(pair, max_size=4).map(lambda pairs: "{" + ", ".join(pairs) + "}")


@st.composite
def logs(draw: Any) -> list[str]:
    """Records whose fields mostly are of one kind."""
    leaf = draw(st.sampled_from(PALETTES))
    inner = obj(leaf | obj(leaf, ["a"]), ["a", "b"])
    lists = st.lists(leaf | obj(leaf, ["a"]), max_size=3).map(lambda items: "[" + ",".join(items) + "]")
    whole = st.fixed_dictionaries(
        {}, optional={"a": leaf, "b": leaf, "m": inner | leaf, "l": lists | leaf, "a.b": leaf, "other": odd | leaf}
    ).map(lambda fields: "{" + ",".join(f"{json.dumps(key)}: {value}" for key, value in fields.items()) + "}")
    twice = obj(leaf, ["a", "b", "m", "other"])
    return draw(st.lists(whole | whole | whole | twice, min_size=1, max_size=12))


def converted(texts: Any, columns: list[TypedColumn], few: int) -> dict[TypedColumn, tuple[list[Any], list[bool]]]:
    wanted = {each.path: frozenset(type_of(other) for other in columns if other.path == each.path) for each in columns}
    found = Reader(wanted, few).read(texts)
    done = {}
    for each in columns:
        rows: list[Any] = [None] * len(texts)
        for some in found[each.path]:
            part = convert(some.kind, some.values, type_of(each))
            for row, value, misfit in zip(some.rows, part.values.to_pylist(), part.misfit.tolist(), strict=True):
                assert rows[row] is None
                rows[row] = (value, misfit)
        done[each] = rows
    return done


@settings(max_examples=200, deadline=None)
@given(logs(), st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from(TYPES)), min_size=1, max_size=4, unique=True))
@example(['{"a": 1}', '{"a": 2.5}'], [("a", "DECIMAL(5, 2)")])
def test_arrow_reads_as_python_does(records: list[str], wanted: list[tuple[str, str]]) -> None:
    columns = [column(path, kind, name=f"{path} {kind}") for path, kind in wanted]
    texts = pa.array(records, pa.string())
    assert converted(texts, columns, few=1) == converted(texts, columns, few=len(records))
