"""Table `joined` as the pipeline's file asks for it: columns, partitions and statistics."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from clickjoin.config import Pipeline
from clickjoin.engines.arrow import ArrowTables
from clickjoin.joiner.output_table import MAX_SKIPPING, skipping_columns
from clickjoin.kernel import data_skipping
from clickjoin.kernel.data_file import Target, write
from clickjoin.kernel.event_key import dates_of
from clickjoin.lake_setup import initialise
from clickjoin.model.errors import ConfigError
from clickjoin.model.extent import Extent
from clickjoin.model.ids import bucket_of, moment
from clickjoin.model.span import Day
from clickjoin.model.txn import Txn
from clickjoin.report.validate import validate
from clickjoin.schemas import JOINED, Table
from clickjoin.schemas.arrow import arrow_schema
from tests.unit.test_output_config import made

LAST = "\U0010ffff"

DAY = 86_400_000_000
FIRST = 19_700 * DAY
OWN = {"event_date": {"from": "foreign.item", "type": "STRING"}}


def described(pipeline: Pipeline) -> DeltaTable:
    return DeltaTable(f"{pipeline.root}/joined")


def listed(pipeline: Pipeline) -> list[str]:
    return described(pipeline).metadata().configuration["delta.dataSkippingStatsColumns"].split(",")


def test_the_default(tmp_path: Path) -> None:
    pipeline = made(tmp_path, {})
    initialise(pipeline)
    metadata, fields = described(pipeline).metadata(), described(pipeline).schema().fields
    assert (metadata.partition_columns, metadata.description) == (["event_date"], JOINED.purpose)
    comments = {field.name: field.metadata["comment"] for field in fields}
    assert comments == {column.name: column.meaning for column in JOINED.columns} | {
        "foreign_record": "the whole foreign record as JSON text",
        "primary_record": "the whole primary record as JSON text",
    }
    assert listed(pipeline) == ["event_time", "event_id", "token"]
    assert ArrowTables(pipeline.root).table("joined") == JOINED


@pytest.mark.parametrize("partition", ["event_date", ["event_date"], "bucket", ["bucket"]])
def test_as_the_file_says(tmp_path: Path, partition: Any) -> None:
    """And a file that says nothing goes on with it."""
    columns = {"columns": {"n": {"from": "foreign.item", "type": "INT"}}}
    pipeline = made(tmp_path, {"partition": partition} | columns)
    initialise(pipeline)
    initialise(pipeline)
    initialise(silent := made(tmp_path, columns))
    assert validate(silent).problems == []
    wanted = partition if isinstance(partition, str) else partition[0]
    assert ArrowTables(pipeline.root).table("joined").partitions == (wanted,)
    assert listed(pipeline) == ["event_time", "event_id", "token", *(["event_date"] if wanted == "bucket" else []), "n"]


@pytest.mark.parametrize("partition", ["day", [], ["bucket", "event_date"], [1], {"event_date": 1}, None])
def test_no_such_partition(tmp_path: Path, partition: Any) -> None:
    with pytest.raises(ConfigError, match=r"output.partition.*is no partition of `joined`; write \[bucket\] or"):
        made(tmp_path, {"partition": partition})


@pytest.mark.parametrize(("first", "second"), [("bucket", "event_date"), ("event_date", "bucket")])
def test_partitions_stay(tmp_path: Path, first: str, second: str) -> None:
    initialise(made(tmp_path, {"partition": first}))
    said = rf"output.partition is \[{second}\] in the pipeline's file, and the lake was begun with \[{first}\].*Set it"
    with pytest.raises(ConfigError, match=said):
        initialise(changed := made(tmp_path, {"partition": second}))
    assert [text for text in validate(changed).problems if text.startswith(f"output.partition is [{second}]")]
    initialise(made(tmp_path, {"partition": first}))


def test_of_two_that_begin_a_lake_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create, other = ArrowTables.create, made(tmp_path, {"partition": "event_date"})

    def late(self: ArrowTables, table: Table) -> bool:
        monkeypatch.setattr(ArrowTables, "create", create)
        initialise(other)
        return create(self, table)

    monkeypatch.setattr(ArrowTables, "create", late)
    with pytest.raises(ConfigError, match=r"the lake was begun with \[event_date\]"):
        initialise(made(tmp_path, {"partition": "bucket"}))


@pytest.mark.parametrize("begun", [False, True])
def test_a_new_lake_has_that_name_itself(tmp_path: Path, begun: bool) -> None:
    if begun:
        initialise(made(tmp_path, {}))
    pipeline = made(tmp_path, {"columns": OWN})
    with pytest.raises(ConfigError, match=r"output.columns: column event_date is taken.*another name"):
        initialise(pipeline)
    assert any("column event_date is taken" in text for text in validate(pipeline).problems)
    assert (tmp_path / "lake/p/joined").exists() == begun


def test_what_statistics_are_kept_of() -> None:
    many = {f"c{n}": "INT" for n in range(20)}
    assert skipping_columns(many) == [f"c{n}" for n in range(MAX_SKIPPING)]
    kinds = {
        "foreign_record": "STRING",
        "foreign": "STRING",
        "good": "BOOLEAN",
        "größe": "INT",
        "day": "DATE",
        "raw": "binary",
        "text": "STRING",
    }
    assert skipping_columns(kinds) == ["day", "text"]


def test_statistics_of_columns_that_come_later(tmp_path: Path) -> None:
    columns = {"a": {"from": "foreign.item", "type": "BIGINT"}}
    initialise(made(tmp_path, {"columns": columns}))
    pipeline = made(tmp_path, {"columns": {"b": {"from": "foreign.item", "type": "INT"}} | columns})
    initialise(pipeline)
    assert listed(pipeline) == ["event_time", "event_id", "token", "a", "b"]
    version = described(pipeline).version()
    initialise(made(tmp_path, {"columns": columns}))
    assert (described(pipeline).version(), ArrowTables(pipeline.root).table("joined").statistics[-1]) == (version, "b")


@pytest.mark.parametrize(
    ("kind", "values", "ends"),
    [
        (pa.float64(), [1.5, float("nan"), -2.0], None),  # to Spark NaN is above all
        (pa.float64(), [float("inf"), 1.0, float("-inf")], (float("-inf"), float("inf"))),
        (pa.timestamp("us", "UTC"), [0, 1 << 61], None),  # no year that Python knows
        (pa.timestamp("us", "UTC"), [-1, 5], ("1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00.000005Z")),
        (pa.date32(), [-1, 3], ("1969-12-31", "1970-01-04")),
        (pa.date32(), [1 << 29], None),
        (pa.decimal128(10, 2), [None], (None, None)),
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("1E+3")], (1.5, 1000)),
        (pa.string(), ["b", None, "ä"], ("b", "ä")),
        (pa.string(), ["a", "b" * 70], ("a", "b" * 64 + LAST)),
        (pa.string(), ["a", "b" * 64 + LAST + "c" * 9], ("a", "b" * 64 + LAST + LAST)),
        (pa.string(), [LAST * 70], (LAST * 64, LAST * 70)),
    ],
)
def test_statistics_of_typed_columns(tmp_path: Path, kind: pa.DataType, values: Any, ends: Any) -> None:
    raw = pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else None
    rows = pa.table({"v": pa.array(values, kind) if raw is None else raw})
    (file,) = write(Target(str(tmp_path), rows.schema, (), ("v", "gone")), rows)
    stats = json.loads(file.stats)
    if ends is None:  # an end that is missing beside others is null to readers, and no row is found
        assert stats == {"numRecords": len(values)}
    else:
        assert (stats["minValues"].get("v"), stats["maxValues"].get("v")) == ends
        assert stats["nullCount"] == {"v": values.count(None)}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float64(), [1.5, float("inf")]),
        (pa.float64(), [float("-inf"), 1.5]),
        (pa.float64(), [1.5, float("nan")]),
        (pa.decimal128(38, 2), [Decimal("1.50"), Decimal("123456789012345678901234567890123456.78")]),
        (pa.string(), ["a", "b" * 70]),
        (pa.string(), ["b" * 64 + LAST + "c", "b" * 64 + LAST + "d"]),
        (pa.date32(), [date(2026, 3, 1), None]),
        (pa.string(), [None, None]),
    ],
)
def test_readers_find_each_value_by_the_statistics(tmp_path: Path, kind: pa.DataType, values: Any) -> None:
    rows = pa.table({"id": list(map(str, range(len(values)))), "v": pa.array(values, kind)})
    table = DeltaTable.create(str(tmp_path), schema=rows.schema)
    for number, part in enumerate((rows, pa.table({"id": ["z"], "v": pa.array([None], kind)}))):
        (file,) = write(Target(str(tmp_path), rows.schema, (), ("id", "v")), part)
        add = {"path": file.path, "size": file.size, "partitionValues": {}, "modificationTime": 0, "dataChange": True}
        entry = [{"commitInfo": {"timestamp": 0}}, {"add": {**add, "stats": file.stats}}]
        Path(tmp_path, "_delta_log", f"{number + 1:020}.json").write_text(
            "\n".join(json.dumps(line, ensure_ascii=False) for line in entry)
        )
    table = DeltaTable(str(tmp_path))
    for number, value in enumerate(values):
        assert table.to_pyarrow_table(filters=[("id", "=", str(number))]).num_rows == 1
        if value is not None and value == value:
            found = table.to_pyarrow_table(filters=[("v", "=", value)])
            assert found["id"].to_pylist() == [str(number)], value


def test_dates_are_those_of_utc() -> None:
    times = pa.array([-1, 0, DAY - 1, DAY], pa.int64()).cast(pa.timestamp("us", "UTC"))
    found = dates_of(pa.table({"event_time": times})).to_pylist()
    assert found == [date(1969, 12, 31), date(1970, 1, 1), date(1970, 1, 1), date(1970, 1, 2)]


@pytest.mark.parametrize("width", [60, 3600, 86400])
def test_files_of_a_date_are_found_by_its_buckets(tmp_path: Path, width: int) -> None:
    """Exactly: late changes of closed dates are seen by the number of rows in the log."""
    delta = ArrowTables(str(tmp_path))
    delta.create(JOINED)
    for n in range(5):
        times = [FIRST + n * DAY, FIRST + (n + 1) * DAY - 1]
        rows = [
            dict.fromkeys(JOINED.names)
            | {"event_time": moment(at), "event_date": moment(at).date(), "bucket": bucket_of(at, width)}
            for at in times
        ]
        delta.append_table("joined", pa.Table.from_pylist(rows, schema=arrow_schema(JOINED)), Txn("t", n + 1))
    actions = delta.files("joined")
    for n in range(5):
        extent = Day(moment(FIRST + n * DAY).date()).span.extent(width)
        assert data_skipping.rows_in(actions, extent) == 2
        without_time = Extent(2, extent.buckets, None, None)
        assert data_skipping.rows_in(actions, without_time) == 2
