"""Other writers of the same tables, between two steps; and what is known to break the promise still."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from clickjoin.backup.restore import restore
from clickjoin.backup.take import take
from clickjoin.jobs.checking import verify
from clickjoin.jobs.upkeep import forget, gc
from clickjoin.lake.table_features import FeatureRefused
from clickjoin.model.errors import LakeError, LakeReplaced
from tests.conformance import oracle
from tests.conformance.runs import Known, Make, carried, compare, undisturbed
from tests.conformance.scenarios import BY_ID, JOIN, Q, Scenario, Step, events
from tests.conformance.world import BASE, HOUR, World, click
from tests.sampled import some
from tests.spark.bench import crash_at

KNOWN: Known = {}
SHORT = {**BY_ID, "registry": {**BY_ID["registry"], "retention": "3h", "bucket": "1h"}, "verify": {"window": "1h"}}


def _silent(_: object) -> None:
    pass


def _restored(make: Make, table: str) -> World:
    """Three batches, then a table as it was before its last commit, by Spark's RESTORE; no process lives on."""
    world = make()
    world.queries(Q)
    for name in ("a", "b", "c"):
        world.clicks(click(name, 10, Q))
        world.work()
    last = world.spark.sql(f"DESCRIBE HISTORY delta.`{world.tables / table}`").first()
    assert last
    _sql(world, f"RESTORE TABLE {{}} TO VERSION AS OF {last['version'] - 1}", table)
    world.end()
    return world


def _sql(world: World, statement: str, table: str) -> None:
    world.spark.sql(statement.format(f"delta.`{world.tables / table}`")).collect()


@pytest.mark.parametrize("table", some(["registry", "pending", "joined", "foreign", "primary", "journal"], 3))
def test_another_writer_compacts_between_steps(make: Make, table: str) -> None:
    """Spark's OPTIMIZE, by hand."""
    wanted = undisturbed(make, JOIN, KNOWN).state
    steps: list[Step] = []
    for step in JOIN.steps:
        steps += [step, Step(lambda world: _sql(world, "OPTIMIZE {}", table))]
    world, _ = carried(make, Scenario("compacted", tuple(steps), (), JOIN.fields))
    compare(world, wanted, table)


@pytest.mark.parametrize("table", some(["registry", "journal", "joined", "foreign"], 4))
def test_a_table_that_spark_has_put_back(make: Make, table: str) -> None:
    """Its versions go on: no replica works on it until its rows are back, also where other commits came behind it."""
    world = _restored(make, table)
    _sql(world, "OPTIMIZE {}", table)
    newest = _versions(world, table)
    with pytest.raises(LakeError, match=rf"{table}: its version \d+ is a RESTORE or an overwrite by another program"):
        world.work("west")
    world.end()
    undo = next(version for version in range(newest, 0, -1) if _operation(world, table, version) == "RESTORE") - 1
    _sql(world, f"RESTORE TABLE {{}} TO VERSION AS OF {undo}", table)
    world.work("west")
    assert oracle.faults(world.folder, world.tables, copies=2) == {}


@pytest.mark.parametrize("table", some(["registry", "joined"], 1))
def test_an_older_state_that_is_written_over_a_table(make: Make, table: str) -> None:
    """By another engine than the one that RESTORE is a statement of: the same rows are gone, and it is undone alike."""
    world = make()
    world.queries(Q)
    for name in ("a", "b"):
        world.clicks(click(name, 10, Q))
        world.work()
    newest = _versions(world, table)
    older = DeltaTable(str(world.tables / table), version=newest - 1).to_pyarrow_table()
    write_deltalake(str(world.tables / table), older, mode="overwrite")
    world.clicks(click("c", 12, Q))
    for replica in ("main", "west"):
        with pytest.raises(LakeError, match=rf"{table}: its version {newest + 1} is a RESTORE or an overwrite"):
            world.work(replica)
    world.end()
    _sql(world, f"RESTORE TABLE {{}} TO VERSION AS OF {newest}", table)
    world.work()
    world.work("west")
    assert oracle.faults(world.folder, world.tables, copies=2) == {}


def _versions(world: World, table: str) -> int:
    return DeltaTable(str(world.tables / table)).version()


def _operation(world: World, table: str, version: int) -> str:
    rows = DeltaTable(str(world.tables / table)).history()
    return next((row["operation"] for row in rows if row["version"] == version), "")


def test_a_process_lives_through_a_restore(make: Make) -> None:
    """It commits nothing more once it has seen it, and goes on when the rows are back."""
    world = make()
    world.queries(Q)
    for name in ("a", "b"):
        world.clicks(click(name, 10, Q))
        world.work()
    last = _versions(world, "registry")
    _sql(world, f"RESTORE TABLE {{}} TO VERSION AS OF {last - 1}", "registry")
    world.clicks(click("c", 12, Q))
    with pytest.raises(LakeError, match=r"registry: its version .* RESTORE"):
        world.work()
    _sql(world, f"RESTORE TABLE {{}} TO VERSION AS OF {last}", "registry")
    world.work()
    assert oracle.faults(world.folder, world.tables) == {}


@pytest.mark.parametrize("grown", some([3, 0], 2))
def test_a_store_that_comes_back_older_under_a_process(make: Make, grown: int) -> None:
    """The same versions are gone, or hold something else by then: it commits nothing on top; a new one reads on."""
    world = make()
    world.queries(Q)
    world.clicks(click("a", 10, Q))
    world.work()
    kept = world.folder / "kept"
    shutil.copytree(world.tables, kept)
    for name in ("b", "c"):
        world.clicks(click(name, 11, Q))
        world.work()
    before = world.engine()
    shutil.rmtree(world.tables)
    shutil.copytree(kept, world.tables)
    for number in range(grown):
        world.clicks(click(f"w{number}", 13, Q))
        world.work("west")
    world.clicks(click("d", 12, Q))
    with pytest.raises(LakeReplaced, match="older data was put in its place"):
        before.join_once()
    world.end()
    world.work()
    world.work("west")
    assert oracle.faults(world.folder, world.tables, copies=2) == {}


@pytest.mark.parametrize("table", some(["registry", "joined"], 2))
def test_rows_that_spark_has_put_back_are_repaired(make: Make, table: str) -> None:
    """RESTORE takes rows away, and leaves the transactions: verification finds each, repairs it, and says so."""
    world = _restored(make, table)
    assert ("lost" in oracle.faults(world.folder, world.tables)) == (table == "joined")
    since = datetime.fromtimestamp(BASE, UTC).isoformat()
    verify(world.spark, world.pipeline, "main", _silent, since=since, repair=True)
    world.now += 7 * HOUR  # by the machine's clock, which the repair goes by, it is that late
    world.work()
    world.work("west")
    assert oracle.faults(world.folder, world.tables, copies=2) == {}
    assert verify(world.spark, world.pipeline, "main", _silent, since=since)["ok"]


def test_a_process_from_before_a_restore(make: Make) -> None:
    """It commits nothing on top of the lake that has taken the place of its own."""
    world = make()
    world.queries(Q)
    world.clicks(click("a", 10, Q))
    world.work()
    take(world.pipeline, world.folder / "backups", _silent, wait=5)
    world.clicks(click("b", 11, Q))
    world.work()
    before = world.engine()
    restore(world.pipeline, world.folder / "backups", "", _silent, force=True)
    world.clicks(click("c", 12, Q))
    try:
        before.join_once()
    except LakeReplaced:
        world.end()
        world.work()
        assert oracle.faults(world.folder, world.tables) == {}
        return
    raise AssertionError("a process from before the restore works on")


def test_a_feature_that_is_set_while_it_runs(make: Make) -> None:
    """No process begins on the table any more, and none stops half-way; what it says to run in Spark is the way on."""
    world = make()
    world.queries(Q)
    world.clicks(click("a", 10, Q))
    world.work()
    _sql(world, "ALTER TABLE {} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')", "registry")
    world.end()
    before = oracle.state(world.tables)
    world.clicks(click("a", 10, Q), click("b", 20, Q))
    with pytest.raises(FeatureRefused, match="rowTracking") as refused:
        world.engine()
    assert oracle.state(world.tables) == before
    for statement in refused.value.statements:
        world.spark.sql(statement).collect()
    world.work()
    assert oracle.faults(world.folder, world.tables) == {}
    assert sorted(row["event_id"].split(":")[0] for row in oracle.rows(world.tables, "joined")) == ["a", "b"]


def test_batches_that_a_table_is_to_forget_while_it_runs(make: Make) -> None:
    """A batch that has failed once it was published is not published again: what says so is refused before it goes."""
    world = make()
    world.queries(Q)
    world.clicks(click("a", 10, Q), click("b", 20, Q))
    with crash_at(world.engine().lake, "joined", after=True):
        world.work()
    setting = "'delta.setTransactionRetentionDuration' = 'interval 0 seconds'"
    _sql(world, f"ALTER TABLE {{}} SET TBLPROPERTIES ({setting})", "joined")
    time.sleep(1.1)
    with pytest.raises(FeatureRefused, match="setTransactionRetentionDuration") as refused:
        world.work()
    for statement in refused.value.statements:
        world.spark.sql(statement).collect()
    world.work()
    assert oracle.faults(world.folder, world.tables) == {}


def _by_id(make: Make, fields: Any) -> World:
    world = make(**fields)
    events(world, 0, 10)
    world.work()
    return world


def test_a_second_replica_after_the_window(make: Make) -> None:
    """Once claims are gone, too: what was sent once is published once."""
    world = _by_id(make, SHORT)
    world.now = BASE + 9.5 * HOUR
    events(world, 100, 101)
    world.work()
    gc(world.spark, world.pipeline, "main", _silent, wait=0)
    world.work("west")
    assert oracle.faults(world.folder, world.tables, copies=2) == {}


def test_what_came_at_two_times_is_forgotten(make: Make) -> None:
    world = _by_id(make, BY_ID)
    world.now += 2 * HOUR
    events(world, 0, 10)
    world.work()
    forget(world.spark, world.pipeline, "main", _silent, where="foreign.n=3", request="R1", apply=True, wait=0)
    assert "doubled_claims" not in oracle.faults(world.folder, world.tables)
