"""Typed columns of JSON records: what fits a type, and what becomes of what does not."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from clickjoin.kernel.adapter import GIVEN, TypedOutput, made_of, merged, misfits_of, needs_spark
from clickjoin.kernel.typed_columns import columns as typed_columns
from clickjoin.kernel.typed_columns.columns import typed, wrong_values
from clickjoin.model.field_path import TypedColumn, parse_path

MISFIT = "misfit"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def column(path: str, kind: str, default: str | None = None, name: str = "c") -> TypedColumn:
    return TypedColumn(name, "foreign", parse_path(path), kind, default)


def of(records: list[str | None], path: str, kind: str, default: str | None = None) -> list[Any]:
    """A column's values, `misfit` where they do not fit."""
    found = typed(pa.array(records, pa.string()), [column(path, kind, default)])
    values = found.values["c"].to_pylist()
    return [MISFIT if wrong else value for value, wrong in zip(values, found.misfits["c"].tolist(), strict=True)]


@pytest.mark.parametrize("many", [1, 200])
@pytest.mark.parametrize("kind", ["BIGINT", "STRING", "BOOLEAN"])
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"v": 1, "v": 2}', "v"), ('{"v": 1, "w": 0, "v": 1}', "v"), ('{"v": null, "v": 1}', "v"),
        ('{"v": 1, "v": null}', "v"), ('{"m": {"v": 1, "v": 2}}', "m.v"), ('{"m": {"v": 1}, "m": {"v": 2}}', "m.v"),
        ('{"m": {}, "m": {"v": 2}}', "m.v"), ('{"l": [{"v": 1, "v": 2}]}', "l[0].v"), ('{"l": [1], "l": [2]}', "l[0]"),
    ],
)  # fmt: skip
def test_a_key_that_is_there_twice(text: str, path: str, kind: str, many: int) -> None:
    """It says nothing; keys that no column reads may be there twice."""
    fine = '{"v": 1, "m": {"v": 1, "o": 1, "o": 2}, "l": [{"v": 1}], "o": 1, "o": 2}'
    fine = fine if path != "l[0]" else '{"l": [1], "o": 1, "o": 2}'
    found = of([fine] * many + [text] + [fine] * many, path, kind)
    right = {"BIGINT": 1, "STRING": "1", "BOOLEAN": True}[kind]
    assert found == [right] * many + [MISFIT] + [right] * many
    (why,) = wrong_values(pa.array([text]), [column(path, kind)]).values()
    assert f"foreign.{path} is named twice, which does not fit" in why[1] or "null" in text


@pytest.mark.parametrize("many", [1, 200])
@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        ('"é"', "STRING", "é"),
        ('""', "STRING", ""),
        ("12", "STRING", "12"),
        ("1.50", "STRING", "1.50"),
        ("true", "STRING", "true"),
        ('{"a": [1.0, "é", null]}', "STRING", '{"a":[1.0,"é",null]}'),
        ("[]", "STRING", "[]"),
        (r'"\ud800"', "STRING", MISFIT),
        (r'["\ud800"]', "STRING", r'["\ud800"]'),
        ("12", "BIGINT", 12),
        ('"12"', "BIGINT", 12),
        ('" +12 "', "BIGINT", 12),
        ('""', "BIGINT", None),
        ("null", "BIGINT", None),
        ("12.0", "BIGINT", 12),
        ("1e3", "BIGINT", 1000),
        ("12.5", "BIGINT", MISFIT),
        ('"12 pieces"', "BIGINT", MISFIT),
        ("true", "BIGINT", MISFIT),
        ("[1]", "BIGINT", MISFIT),
        ("9223372036854775807", "BIGINT", 2**63 - 1),
        ("-9223372036854775808", "BIGINT", -(2**63)),
        ("9223372036854775808", "BIGINT", MISFIT),
        ("2147483648", "INT", MISFIT),
        ("-2147483648", "INT", -(2**31)),
        ("0.1", "DOUBLE", 0.1),
        ("3", "DOUBLE", 3.0),
        ('"0.1"', "DOUBLE", 0.1),
        ("1e999", "DOUBLE", MISFIT),
        ("NaN", "DOUBLE", MISFIT),
        ("0.5", "FLOAT", 0.5),
        ("1e300", "FLOAT", MISFIT),
        ("true", "BOOLEAN", True),
        ('"False"', "BOOLEAN", False),
        ("1", "BOOLEAN", True),
        ('"0"', "BOOLEAN", False),
        ("2", "BOOLEAN", MISFIT),
        ("3.5", "DECIMAL(10, 2)", Decimal("3.50")),
        ('"3.50"', "DECIMAL(10, 2)", Decimal("3.50")),
        ("3.5000", "DECIMAL(10, 2)", Decimal("3.50")),
        ("3.505", "DECIMAL(10, 2)", MISFIT),
        ("12345678", "DECIMAL(10, 2)", Decimal(12345678)),
        ("123456789", "DECIMAL(10, 2)", MISFIT),
        ("1e400", "DECIMAL(10, 2)", MISFIT),
        ("0.1234567890123456789012345678", "DECIMAL(38, 28)", Decimal("0.1234567890123456789012345678")),
        ('"2026-03-01"', "DATE", date(2026, 3, 1)),
        ('"2026-03-01T23:30:00-02:00"', "DATE", date(2026, 3, 2)),
        ("1772366400", "DATE", date(2026, 3, 1)),
        ("-1", "DATE", date(1969, 12, 31)),
        ('"2026-03-01T12:00:00Z"', "TIMESTAMP", NOON),
        ('"2026-03-01 12:00:00"', "TIMESTAMP", NOON),
        ('"1772366400"', "TIMESTAMP", NOON),
        ("1772366400000", "TIMESTAMP", NOON),
        ("1772366400.0", "TIMESTAMP", NOON),
        ('"yesterday"', "TIMESTAMP", MISFIT),
        ("-90000000000", "TIMESTAMP", MISFIT),
    ],
)
def test_fits(value: str, kind: str, wanted: Any, many: int) -> None:
    assert of([f'{{"x": 1, "v": {value}}}'] * many, "v", kind) == [wanted] * many


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("user.ids[0]", [7, None, None, None]),
        ("user.ids[1]", [8, None, None, None]),
        ("`a.b`.c", [1, None, None, None]),
        ("items[0].price", [None, 5, None, None]),
        ("user.ids[0].deeper", [None] * 4),
    ],
)
def test_paths(path: str, wanted: list[Any]) -> None:
    records = [
        '{"user": {"ids": [7, 8]}, "a.b": {"c": 1}}',
        '{"user": {"ids": []}, "items": [{"price": 5}, {}]}',
        '{"user": null, "items": null}',
        '{"user": "none", "items": {}}',
    ]
    assert of(records, path, "BIGINT") == wanted
    assert of([record for record in records for _ in range(100)], path, "BIGINT") == list(np.repeat(wanted, 100))


def test_default_is_for_what_is_not_there() -> None:
    records = ['{"v": "x"}', "{}", '{"v": null}', '{"v": ""}', '{"v": 5}']
    assert of(records, "v", "BIGINT", "7") == [MISFIT, 7, 7, 7, 5]
    assert of(records, "v", "STRING", '"none"') == ["x", "none", "none", "", "5"]


def test_nested_too_deeply_for_python() -> None:
    deep = '{"v": 5, "d": ' + "[" * 3000 + "]" * 3000 + "}"
    assert of([deep, '{"v": "6"}'], "v", "BIGINT") == [5, 6]
    assert of([deep, '{"v": "6"}'], "d", "BIGINT") == [MISFIT, None]
    assert of([deep], "none", "BIGINT", "1") == [1]


def test_what_is_no_json() -> None:
    assert of(['{"v": 1', '{"v": 2}'], "v", "BIGINT") == [MISFIT, 2]
    assert of([None, '{"v": 2}'], "v", "BIGINT") == [None, 2]


TYPES = ["STRING", "BIGINT", "INT", "DOUBLE", "FLOAT", "BOOLEAN", "DECIMAL(5, 2)", "DECIMAL(38, 6)", "DECIMAL(2, 2)",
         "DATE", "TIMESTAMP"]  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
def test_arrow_reads_what_is_of_one_kind(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left to Python where values are alike: that is what makes it fast."""
    values = {"STRING": '"x"', "BOOLEAN": "true", "DATE": '"2026-03-01"', "TIMESTAMP": "1772366400.5", "DOUBLE": "1"}
    value = values.get(kind, "0.25" if kind.startswith("DECIMAL") or kind == "FLOAT" else "7")
    monkeypatch.setattr(typed_columns, "by_line", None)
    assert MISFIT not in of([f'{{"m": {{"l": [{{"v": {value}}}]}}}}'] * 1000, "m.l[0].v", kind)


def joined(clicks: list[str], queries: list[str]) -> pa.Table:
    """What an adapter is given of some events."""
    ids = [f"e{number}" for number in range(len(clicks))]
    rows = {"event_id": ids, "event_time": [NOON] * len(ids), "primary_id": ids, "primary_time": [NOON] * len(ids)}
    return pa.table(rows | {"payload": clicks, "primary": queries}).cast(GIVEN)


def test_rows_of_the_adapter() -> None:
    adapter = TypedOutput(
        [column("n", "INT", name="n"), TypedColumn("m", "primary", ("m",), "DATE"), column("o", "INT", name="o")],
        ["primary_record"],
    )
    assert adapter.columns == {"primary_record": "STRING", "n": "INT", "m": "DATE", "o": "INT"}
    assert not needs_spark(adapter)
    given = joined(['{"n": 1}', '{"n": "x", "o": []}', "{}"], ['{"m": "x"}', '{"m": "2026-03-01"}', "{}"])
    origins, rows = merged(adapter, given, made_of(adapter.columns, misfits=True))
    assert origins.tolist() == [0, 1, 2]
    assert rows.drop_columns(["event_time"]).to_pylist() == [
        {"event_id": "e0", "primary_record": '{"m": "x"}', "n": 1, "m": None, "o": None, "_misfits": ["m"]},
        {"event_id": "e1", "primary_record": '{"m": "2026-03-01"}', "n": None, "m": date(2026, 3, 1), "o": None,
         "_misfits": ["n", "o"]},
        {"event_id": "e2", "primary_record": "{}", "n": None, "m": None, "o": None, "_misfits": []},
    ]  # fmt: skip
    assert misfits_of(rows) == {"n": 1, "m": 1, "o": 1}


def test_records_alone_and_no_rows() -> None:
    for adapter in (TypedOutput([], ["foreign_record"]), TypedOutput([column("n", "INT", name="foreign_record")])):
        for rows in (joined(["{}"], ["{}"]), joined([], [])):
            made = merged(adapter, rows, made_of(adapter.columns, misfits=True))[1]
            assert made.num_rows == rows.num_rows
            assert misfits_of(made) == {}


def test_what_landing_says() -> None:
    columns = [column("n", "INT", name="n"), column("m[0]", "DATE", name="m")]
    texts = pa.array(['{"n": 1}', '{"n": "' + "x" * 99 + '", "m": [2.5]}', '{"m": ["soon"]}'])
    found = wrong_values(texts, columns)
    assert list(found) == [1, 2]
    assert found[1] == (
        "wrong-value", f'column n: foreign.n is "{"x" * 59}…, which does not fit INT; fix the record, or the type',
    )  # fmt: skip
    assert found[2][1].startswith('column m: foreign.m[0] is "soon", which does not fit DATE')
