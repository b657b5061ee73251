"""The dbt model of examples/dbt: what its SQL selects in a first run, and in one that follows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import jinja2
import pytest

MODELS = Path(__file__).parents[2] / "examples/dbt/models"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def compiled(*, incremental: bool, model: str = "clicks") -> str:
    """A model as dbt would send it."""
    names = {"config": lambda **_: "", "source": lambda _, table: table, "ref": lambda table: table, "this": "clicks"}
    text = (MODELS / f"{model}.sql").read_text()
    return jinja2.Template(text).render(**names, is_incremental=lambda: incremental)


@pytest.fixture
def database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    columns = "event_id VARCHAR, event_time TIMESTAMPTZ, event_date DATE, published_at TIMESTAMPTZ, primary_id VARCHAR"
    columns += ", primary_time TIMESTAMPTZ, foreign_record VARCHAR, primary_record VARCHAR"
    database.execute(f"CREATE TABLE joined ({columns})")
    return database


def publish(database: duckdb.DuckDBPyConnection, name: str, minutes: float) -> None:
    row = [name, NOON, date(2026, 3, 1), NOON + timedelta(minutes=minutes), "q", NOON - timedelta(seconds=4)]
    database.execute("INSERT INTO joined VALUES (?, ?, ?, ?, ?, ?, '{}', '{}')", row)


def ids(database: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    return sorted(row[0] for row in database.execute(sql).fetchall())


def test_a_run_that_follows_takes_an_hour_of_overlap(database: duckdb.DuckDBPyConnection) -> None:
    for name, minutes in (("old", 0), ("near", 50), ("newest", 100)):
        publish(database, name, minutes)
    first = compiled(incremental=False)
    assert ids(database, first) == ["near", "newest", "old"]
    database.execute(f"CREATE TABLE clicks AS {first}")
    publish(database, "late", 60)  # readable only now
    publish(database, "new", 101)
    assert ids(database, compiled(incremental=True)) == ["late", "near", "new", "newest"]


def test_counts_by_hour(database: duckdb.DuckDBPyConnection) -> None:
    publish(database, "one", 0)
    publish(database, "two", 1)
    database.execute(f"CREATE TABLE clicks AS {compiled(incremental=False)}")
    found = database.execute(compiled(incremental=False, model="clicks_by_hour")).fetchall()
    assert [(hour.astimezone(UTC), clicks, after) for hour, clicks, after in found] == [(NOON, 2, timedelta(seconds=4))]
