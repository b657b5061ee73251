"""Reading from S3 with few requests: it is what Spark reads, and what others have committed is seen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from deltalake import Field
from deltalake.schema import ArrayType
from pyspark.sql import DataFrame, SparkSession

from clickjoin.engines.arrow import ArrowLake, ArrowTables
from clickjoin.lake import small_reads
from clickjoin.model.extent import Extent, spanning
from clickjoin.model.txn import Txn
from clickjoin.schemas import PENDING, REGISTRY, UNJOINABLE
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.spark.session import in_process
from stack.gateway import Gateway

ROOT, NOON = "s3://reads/lake", datetime(2026, 3, 1, 12, tzinfo=UTC)
FILES = 6


@pytest.fixture(scope="module", autouse=True)
def bucket(gateway: Gateway) -> Iterator[None]:
    gateway.bucket("reads")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.environment().items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def delta(bucket: None) -> ArrowTables:
    """A registry of six commits, each with a claim in either of two shards; and waiting events."""
    made = ArrowTables(ROOT)
    for table in (REGISTRY, PENDING):
        made.create(table)
    for number in range(1, FILES + 1):
        made.append("registry", [claim(number, shard) for shard in (0, 1)], Txn("p/main/join", number))
    made.append("pending", [waiting(number) for number in range(3)], Txn("p/main/join", 1))
    return made


@pytest.fixture(scope="module")
def lake(delta: ArrowTables) -> Iterator[ArrowLake]:
    spark = in_process("1", "1g", s3=True)
    yield ArrowLake(spark, ROOT)
    spark.stop()


def row(table: Any, **values: Any) -> dict[str, Any]:
    return dict.fromkeys(table.names) | values


def claim(number: int, shard: int) -> dict[str, Any]:
    at = NOON + timedelta(minutes=number)
    return row(
        REGISTRY, event_id=f"e{number}/{shard}", event_time=at, bucket="2026-03-01T1200Z", shard=shard,
        token=f"p/main/join/{number}", outcome="joined",
    )  # fmt: skip


def waiting(number: int) -> dict[str, Any]:
    due = None if number else NOON
    return row(PENDING, event_id=f"w{number}", event_time=NOON, replica="main", state="waiting", due_at=due, batch=1)


def sorted_rows(frame: DataFrame) -> list[dict[str, Any]]:
    return sorted((one.asDict() for one in frame.collect()), key=lambda one: str(one["event_id"]))


def by_spark(spark: SparkSession, name: str, version: int) -> DataFrame:
    return spark.read.format("delta").option("versionAsOf", version).load(f"{ROOT}/{name}")


@pytest.mark.parametrize(("name", "back"), [("registry", 0), ("registry", 3), ("pending", 0)])
def test_a_table_reads_as_spark_reads_it(lake: ArrowLake, name: str, back: int) -> None:
    version = lake.delta.version(name) - back
    few, whole = lake.read(name, version if back else None), by_spark(lake.spark, name, version)
    assert not few.inputFiles()  # it was read here
    assert dict(few.dtypes) == dict(whole.dtypes)
    assert sorted_rows(few.select(whole.columns)) == sorted_rows(whole)


def test_an_extent_reads_as_spark_reads_it(lake: ArrowLake, monkeypatch: pytest.MonkeyPatch) -> None:
    extent: Extent = spanning(4, NOON + timedelta(minutes=2), NOON + timedelta(minutes=3), 3600)
    few = lake.read_extent("registry", extent, shards=[1])
    assert not few.inputFiles()
    monkeypatch.setattr(small_reads, "_ON_S3", (0, 0))
    whole = lake.read_extent("registry", extent, shards=[1])
    assert whole.inputFiles()
    assert few.dtypes == whole.dtypes
    assert [one["event_id"] for one in sorted_rows(few)] == ["e2/1", "e3/1"]
    assert sorted_rows(few) == sorted_rows(whole)


def test_a_column_that_this_process_has_no_type_for_is_left_to_spark(lake: ArrowLake) -> None:
    lake.delta.create(UNJOINABLE)
    lake.delta.append("unjoinable", [row(UNJOINABLE, event_id="u1", event_time=NOON, replica="main")], Txn("p", 1))
    lake.delta.open("unjoinable").alter.add_columns([Field("tags", ArrayType("string", contains_null=True))])
    found = lake.read("unjoinable")
    assert found.inputFiles()
    assert [(one["event_id"], one["tags"]) for one in found.collect()] == [("u1", None)]


def test_of_a_file_that_is_gone_spark_says_so(lake: ArrowLake, gateway: Gateway) -> None:
    other = ArrowTables(ROOT)
    data = pa.Table.from_pylist([claim(90, 0)], schema=arrow_schema(REGISTRY))
    files = other.write("registry", data)
    assert other.add("registry", files, Txn("p/main/join", 90))
    (gateway.folder / "data/reads/lake/registry" / files[0].path).unlink()
    with pytest.raises(Exception, match=files[0].path.rpartition("/")[2]):
        lake.read("registry").collect()


def test_what_another_has_committed_is_not_committed_again(delta: ArrowTables) -> None:
    one, two = ArrowTables(ROOT), ArrowTables(ROOT)
    before = one.rows("pending")
    assert one.latest_txn_version("pending", "q") == -1
    for number in range(1, 5):
        assert two.append("pending", [waiting(10 + number)], Txn("q", number))
        assert not one.append("pending", [waiting(20 + number)], Txn("q", number))
    assert one.append("pending", [waiting(25)], Txn("q", 5))
    assert not two.append("pending", [waiting(15)], Txn("q", 5))
    assert one.rows("pending") == before + 5
