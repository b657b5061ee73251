"""The sums find what was done to the tables behind the program's back."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from clickjoin.report import accounts
from tests.sampled import in_full
from tests.spark.bench import Bench, click, query
from tests.spark.count import agrees

Q = query("q")


@pytest.fixture(scope="module")
def bench(make: Any) -> Bench:
    made: Bench = make()
    made.queries(Q)
    made.clicks(click("a", 1, Q), click("b", 2, Q), click("c", 3, query("late")), click("a", 1, Q))
    made.join()
    assert made.accounts() == {
        "primary_records": 1,
        "primary_events": 1,
        "foreign_records": 4,
        "accepted": 3,
        "repeats": 1,
        "joined": 2,
        "pending": 1,
        "agree": True,
    }
    assert agrees(made)
    return made


@pytest.fixture
def tables(bench: Bench, tmp_path: Any) -> Any:
    """The lake's tables, put back afterwards."""
    root = bench.disk
    shutil.copytree(root, tmp_path / "kept")
    yield lambda name: DeltaTable(f"{bench.pipeline.root}/{name}")
    shutil.rmtree(root)
    shutil.copytree(tmp_path / "kept", root)
    bench.engine = bench.replica("main")


def faults(bench: Bench) -> tuple[Any, ...]:
    found = bench.accounts()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "MOST_ROWS", -1)
        assert bench.accounts() == found, "Spark counts what Arrow counts"
    assert agrees(bench) is found.get("agree", False)
    return found.get("lost", 0), found.get("doubled", 0), found.get("agree", False)


def test_a_removed_row(bench: Bench, tables: Any) -> None:
    tables("joined").delete(f"event_id = '{click('a', 1, Q)['event_id']}'")
    assert faults(bench) == (1, 0, False)
    assert (bench.accounts()["wrong_from"], bench.accounts()["wrong_to"]) == ("2026-03-01", "2026-03-02")


def test_a_doubled_row(bench: Bench, tables: Any) -> None:
    rows = bench.engine.lake.delta.read("joined", filters=[("event_id", "=", click("a", 1, Q)["event_id"])])
    write_deltalake(tables("joined"), rows, mode="append")
    assert faults(bench) == (0, 1, False)


@in_full
def test_a_lost_pending_row(bench: Bench, tables: Any) -> None:
    tables("pending").delete()
    assert faults(bench) == (1, 0, False)


@in_full
def test_an_output_that_no_log_holds(bench: Bench, tables: Any) -> None:
    tables("foreign").delete(f"event_id = '{click('b', 2, Q)['event_id']}'")
    assert faults(bench) == (0, 1, False)
