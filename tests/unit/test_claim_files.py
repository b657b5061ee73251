"""Claims that tasks have written: they are compared with whatever was claimed since they were looked up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pytest

from clickjoin.engines.arrow import ArrowLake, ArrowTables
from clickjoin.engines.arrow.claims import commit_claims
from clickjoin.kernel.data_file import DataFile
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY
from clickjoin.schemas.arrow import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_SPARK = cast("SparkSession", None)
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    """A registry with one claim."""
    tables = ArrowTables(str(tmp_path))
    tables.create(REGISTRY)
    tables.append_table("registry", claims(0, 1), Txn("first", 1))
    return tables


def claims(low: int, high: int, hour: int = 0) -> pa.Table:
    """Claims of an hour from noon on."""
    at = NOON + timedelta(hours=hour)
    rows = [
        {"event_id": f"e{n}", "event_time": at + timedelta(seconds=n), "bucket": f"{at:%Y-%m-%dT%H%MZ}", "shard": 0,
         "token": "t", "outcome": "joined"}
        for n in range(low, high)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=arrow_schema(REGISTRY))


def added(delta: ArrowTables, files: list[DataFile], seen: pa.ChunkedArray, *, by_id: bool = False) -> int | None:
    """Claims of a batch, by the product."""
    return commit_claims(ArrowLake(NO_SPARK, delta.root), files, seen, Txn("mine", 1), by_id=by_id)


def held(delta: ArrowTables) -> list[str]:
    return sorted(ArrowTables(delta.root).read("registry")["event_id"].to_pylist())


@pytest.mark.parametrize("by_id", [False, True])
def test_an_id_that_was_claimed_since_is_left_out(delta: ArrowTables, by_id: bool) -> None:
    seen, files = delta.files("registry")["path"], delta.write("registry", claims(5, 9))
    ArrowTables(delta.root).append_table("registry", claims(8, 9), Txn("other", 1))
    assert added(delta, files, seen, by_id=by_id) == 3
    assert held(delta) == ["e0", "e5", "e6", "e7", "e8"]
    new = ArrowTables(delta.root).read("registry", [("event_id", "=", "e5")]).to_pylist()
    assert new == claims(5, 6).to_pylist()


@pytest.mark.parametrize("by_id", [False, True])
def test_others_that_came_since(delta: ArrowTables, by_id: bool) -> None:
    seen, files = delta.files("registry")["path"], delta.write("registry", claims(5, 9))
    ArrowTables(delta.root).append_table("registry", claims(9, 12), Txn("other", 1))
    assert added(delta, files, seen, by_id=by_id) == 4


@pytest.mark.parametrize(("by_id", "count"), [(True, 3), (False, 4)])
def test_an_id_of_another_hour_counts_where_it_is_the_whole_name(delta: ArrowTables, by_id: bool, count: int) -> None:
    seen, files = delta.files("registry")["path"], delta.write("registry", claims(5, 9))
    ArrowTables(delta.root).append_table("registry", claims(8, 9, hour=1), Txn("other", 1))
    assert added(delta, files, seen, by_id=by_id) == count


def test_what_was_seen_is_not_read_again(delta: ArrowTables) -> None:
    files = delta.write("registry", claims(0, 1))
    assert added(delta, files, delta.files("registry")["path"]) == 1


def test_a_registry_that_was_empty_and_all_are_taken(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    delta.create(REGISTRY)
    seen, files = delta.files("registry")["path"], delta.write("registry", claims(0, 2))
    ArrowTables(delta.root).append_table("registry", claims(0, 2), Txn("other", 1))
    assert added(delta, files, seen) == 0
    assert held(delta) == ["e0", "e1"]


def test_a_batch_claims_once(delta: ArrowTables) -> None:
    seen = delta.files("registry")["path"]
    assert added(delta, delta.write("registry", claims(5, 9)), seen) == 4
    assert added(delta, delta.write("registry", claims(20, 22)), seen) is None
    assert len(held(delta)) == 5
