"""What a row holds of all touches of its window, and the weights that docs/attribution.md makes of them."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.blocks import code
from clickjoin.engines.arrow import ArrowTables
from clickjoin.joiner.output_table import skipping_columns
from clickjoin.kernel.adapter import ALL_TOUCHES, GIVEN, TypedOutput, made_of, merged, misfits_of
from clickjoin.kernel.typed_columns.by_line import matcher
from clickjoin.kernel.types import arrow_type, delta_type
from clickjoin.model.field_path import TypedColumn, parse_path
from clickjoin.schemas import JOINED
from tests.unit.lakes import NOON

COLUMNS = (
    TypedColumn("größe", "primary", ("size",), "DECIMAL(9, 2)"),
    TypedColumn("channel", "primary", ("channel",), "STRING", '"none"'),
    TypedColumn("total", "foreign", ("total",), "BIGINT"),
)
Row = list[dict[str, Any]]


def given_rows(rows: list[Row]) -> pa.Table:
    """Rows of which each has these records as its touches, a minute apart."""
    touches = [
        [
            {
                "event_id": f"t{n}",
                "event_time": NOON + timedelta(minutes=n),
                "position": n + 1,
                "payload": json.dumps(one),
            }
            for n, one in enumerate(row)
        ]
        for row in rows
    ]
    columns: dict[str, Any] = {
        "event_id": [f"o{n}" for n in range(len(rows))],
        "event_time": [NOON + timedelta(minutes=len(row)) for row in rows],
        "primary_id": [row[-1]["event_id"] for row in touches],
        "primary_time": [row[-1]["event_time"] for row in touches],
        "payload": ['{"total": 5}'] * len(rows),
        "primary": [row[-1]["payload"] for row in touches],
        "touches": touches,
        "touch_count": [len(row) for row in rows],
    }
    return pa.table(columns, schema=pa.schema([*GIVEN, *ALL_TOUCHES]))


def made(rows: list[Row], records: tuple[str, ...] = (), begin: int = 0) -> tuple[list[dict[str, Any]], dict[str, int]]:
    output = TypedOutput(COLUMNS, records, touches=True)
    at, out = merged(output, given_rows(rows).slice(begin), made_of(output.columns, misfits=True))
    assert at.tolist() == list(range(len(rows) - begin))
    return out.to_pylist(), misfits_of(out)


def record(size: Any, channel: str) -> dict[str, Any]:
    return {"size": size} | ({"channel": channel} if channel else {})


_RECORDS = st.builds(record, st.sampled_from([1, "2.50", "wide", None]), st.sampled_from(["", "ad"]))


@given(st.lists(st.lists(_RECORDS, min_size=1, max_size=5), min_size=1, max_size=5), st.booleans(), st.data())
def test_the_same_of_each_touch_as_of_the_one_that_is_joined(rows: list[Row], whole: bool, data: Any) -> None:
    begin = data.draw(st.integers(0, len(rows) - 1))
    found, misfits = made(rows, ("foreign_record", "primary_record") if whole else (), begin)
    sizes = {1: Decimal(1), "2.50": Decimal("2.5"), "wide": None, None: None}
    for row, records in zip(found, rows[begin:], strict=True):
        for one, each in zip(row["touches"], records, strict=True):
            assert one["größe"] == sizes[each["size"]]
            assert one["channel"] == each.get("channel", "none")
            assert json.loads(one.get("primary_record", "null")) == (each if whole else None)
        assert {name: row[name] for name in ("größe", "channel")} == {
            name: row["touches"][-1][name] for name in ("größe", "channel")
        }
        assert (row["total"], row["touch_count"]) == (5, len(records))
    wrong = [any(each["size"] == "wide" for each in records) for records in rows[begin:]]
    last = [records[-1]["size"] == "wide" for records in rows[begin:]]
    assert misfits == {name: sum(each) for name, each in (("touches", wrong), ("größe", last)) if any(each)}


def test_a_table_takes_its_type_in_each_language(tmp_path: Path) -> None:
    columns = TypedOutput(COLUMNS, ("primary_record",), touches=True).columns
    delta = ArrowTables(str(tmp_path))
    delta.create(JOINED)
    for _ in range(2):
        delta.add_columns("joined", columns)
    known = delta.columns("joined")["touches"]
    assert known == delta_type(columns["touches"]) == (
        "array<struct<`event_id`:string,`event_time`:timestamp,`position`:long,`primary_record`:string,"
        "`größe`:decimal(9,2),`channel`:string>>"
    )  # fmt: skip
    assert arrow_type(known).value_type.field("größe").type == pa.decimal128(9, 2)
    assert delta.schema("joined").field("touches").type == arrow_type(known)
    assert "touches" not in skipping_columns(columns)


@pytest.mark.parametrize(
    ("path", "value", "is_there"),
    [("touches.id", "b", True), ("touches.id", "c", False), ("touches[0].id", "b", False), ("touches.at.n", "2", True)],
)
def test_a_condition_leads_through_arrays(path: str, value: str, is_there: bool) -> None:
    text = {"touches": [{"id": "a"}, {"id": "b", "at": [{"n": 1}, {"n": 2}]}, 5]}
    assert matcher(parse_path(path), value)(json.dumps(text)) is is_there


def test_the_weights_of_the_docs() -> None:
    (sql,) = code("attribution.md", "sql")
    rows: list[Row] = [[{"channel": f"c{n}"} for n in range(count)] for count in (1, 2, 5)]
    joined = pa.Table.from_pylist(made(rows)[0])
    found = duckdb.sql(sql + " ORDER BY event_id, channel").fetchall()
    expected = []
    for order, row in enumerate(joined.to_pylist()):
        count = row["touch_count"]
        ages = np.array([2 ** -((count - n) * 60 / 604_800) for n in range(count)])
        ends = {1: [1.0], 2: [0.5, 0.5], 5: [0.4, 0.2 / 3, 0.2 / 3, 0.2 / 3, 0.4]}[count]
        expected += [
            (f"o{order}", f"c{n}", 1 / count, pytest.approx(ends[n]), pytest.approx(ages[n] / ages.sum()))
            for n in range(count)
        ]
    assert [(*row[:2], *map(float, row[2:])) for row in found] == expected
