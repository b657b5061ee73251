"""Rows of a Delta table as records: their columns, texts of JSON, ids that are decimals, and what is bad."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from clickjoin.model.ids import RecordSpec
from tests.unit.test_sources_delta import AT, Reader, add
from tests.unit.test_sources_delta import path as path


def test_partitions_and_texts_of_json(path: Path) -> None:
    """Columns that lie in no file are in the record, and so are the objects in columns of JSON text."""
    rows = pa.table({
        "id": ["a", "b"], "at": [AT, AT], "day": ["x", "y z"], "n": pa.array([1, None], pa.int32()),
        "query": ['{"who": {"id": 7},\n "p": 1.50}', "no object"],
    })  # fmt: skip
    write_deltalake(str(path), rows, partition_by=["day", "n"])
    source = Reader(path, as_json=["query"])
    assert sorted(source.next()) == ["a", "b"]
    found = {row["event_id"]: json.loads(row["payload"]) for row in source.rows()}
    assert found["a"] == {"id": "a", "at": AT, "day": "x", "n": 1, "query": {"who": {"id": 7}, "p": 1.5}}
    assert found["b"] == {"id": "b", "at": AT, "day": "y z", "n": None, "query": "no object"}
    nested = RecordSpec(("query.who.id",), "at", (), None, 0, 1 << 60, 1 << 20)
    rows_ = source.source.read_here(source.splits, nested).to_pylist()
    assert {row["event_id"] for row in rows_} == {"7", None}


def test_bad_rows_are_kept_whole(path: Path) -> None:
    add(path, "", "x" * 3000, "b", pad="y" * 50)
    found = Reader(path)
    found.plan()
    rows = {row["offset"]: row for row in found.rows()}
    assert [rows[at]["reason"] for at in range(3)] == ["missing-id", "id-too-long", None]
    assert json.loads(rows[1]["raw"])["id"] == "x" * 3000
    assert (rows[1]["length"], rows[1]["part"]) == (1, 0)


def test_ids_that_are_decimals_are_whole_numbers(tmp_path: Path) -> None:
    ids = pa.array([Decimal("7.00"), Decimal("2.50")], pa.decimal128(12, 2))
    write_deltalake(tmp_path / "t", pa.table({"id": ids, "at": [AT, AT]}))
    reader = Reader(tmp_path / "t")
    assert reader.plan() == 1
    rows = sorted(reader.rows(), key=lambda row: int(row["offset"]))
    assert [(row["event_id"], row["reason"]) for row in rows] == [("7", None), (None, "wrong-type")]
