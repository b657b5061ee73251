"""Claims that tasks have written: they are compared with whatever was claimed since they were looked up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from clickjoin.lake import DeltaTables
from clickjoin.model.txn import Txn
from clickjoin.registry import commit
from clickjoin.schemas import REGISTRY
from clickjoin.schemas.arrow import arrow_schema

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.fixture
def delta(tmp_path: Path) -> DeltaTables:
    """A registry with one claim."""
    tables = DeltaTables(str(tmp_path))
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


@pytest.mark.parametrize("by_id", [False, True])
def test_an_id_that_was_claimed_since(delta: DeltaTables, by_id: bool) -> None:
    seen, files = delta.files("registry")["path"], delta.write("registry", claims(5, 9))
    DeltaTables(delta.root).append_table("registry", claims(8, 9), Txn("other", 1))
    with pytest.raises(commit.Taken):
        commit._add(delta, files, seen, Txn("mine", 1), by_id=by_id)
    assert delta.rows("registry") == 2


@pytest.mark.parametrize("by_id", [False, True])
def test_others_that_came_since(delta: DeltaTables, by_id: bool) -> None:
    seen, files = delta.files("registry")["path"], delta.write("registry", claims(5, 9))
    DeltaTables(delta.root).append_table("registry", claims(9, 12), Txn("other", 1))
    assert commit._add(delta, files, seen, Txn("mine", 1), by_id=by_id) == 4


def test_an_id_of_another_hour_counts_where_it_is_the_whole_name(delta: DeltaTables) -> None:
    seen, files = delta.files("registry")["path"], delta.write("registry", claims(5, 9))
    DeltaTables(delta.root).append_table("registry", claims(8, 9, hour=1), Txn("other", 1))
    with pytest.raises(commit.Taken):
        commit._add(delta, files, seen, Txn("mine", 1), by_id=True)
    assert commit._add(delta, files, seen, Txn("mine", 1)) == 4


def test_what_was_seen_is_not_read_again(delta: DeltaTables) -> None:
    files = delta.write("registry", claims(0, 1))
    assert commit._add(delta, files, delta.files("registry")["path"], Txn("mine", 1)) == 1


def test_a_registry_that_was_empty(tmp_path: Path) -> None:
    delta = DeltaTables(str(tmp_path))
    delta.create(REGISTRY)
    seen, files = delta.files("registry")["path"], delta.write("registry", claims(0, 2))
    DeltaTables(delta.root).append_table("registry", claims(1, 2), Txn("other", 1))
    with pytest.raises(commit.Taken):
        commit._add(delta, files, seen, Txn("mine", 1))
