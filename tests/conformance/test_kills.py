"""Killed in front of and behind every commit of every table, then carried on: ids are counted, and rows compared."""

from __future__ import annotations

from contextlib import suppress

import pytest

from clickjoin.jobs.upkeep import gc
from tests.conformance import oracle
from tests.conformance.points import SIDES, Killed, Points, Stop
from tests.conformance.runs import Known, Make, carried, compare, undisturbed
from tests.conformance.scenarios import ALL, KEPT, NEVER, Scenario
from tests.conformance.world import BASE, HOUR, World, click, query
from tests.sampled import FULL, some

KNOWN: Known = {}
# The first that is sampled is a kill between claim and output.
CASES = [(scenario, table, side) for scenario in ALL for table in scenario.tables for side in SIDES]


def _named(value: object) -> str:
    return value.name if isinstance(value, Scenario) else str(value)


@pytest.mark.parametrize("scenario", ALL, ids=_named)
def test_a_scenario_commits_to_what_it_says(make: Make, engine: str, scenario: Scenario) -> None:
    done = undisturbed(make, scenario, KNOWN)
    assert [table for table in scenario.tables if not done.points.commits(table)] == []
    if engine == "spark":
        assert done.writers <= {"Apache-Spark"}


@pytest.mark.parametrize(("scenario", "table", "side"), some(CASES[10:] + CASES[:10], 9), ids=_named)
def test_killed_at_each_commit(make: Make, scenario: Scenario, table: str, side: str) -> None:
    known = undisturbed(make, scenario, KNOWN)
    commits = known.points.commits(table)
    for nth in range(1, commits + 1 if FULL else 2):
        for new in (True, False) if FULL else (bool(nth % 2),):
            world, points = carried(make, scenario, stop := Stop(table, side, nth), new=new)
            if not points.hit:
                pytest.fail(f"{stop} was never reached")
            compare(world, known.state, (stop, new))


def _hour_passes(world: World, hour: int) -> None:
    """Work on one click more, of so many hours after the first: the boundary may come as near as three hours to it."""
    world.now = BASE + (hour + 0.5) * HOUR
    named = query(f"q{hour}", hour * HOUR)
    world.queries(named)
    world.clicks(click(f"new{hour}", hour * HOUR + 1, named))
    world.work()


def _collect(world: World) -> None:
    gc(world.spark, world.pipeline, "main", lambda _: None, wait=0)


@pytest.mark.parametrize(
    ("table", "side"), some([(name, side) for name in ("expired", "pending") for side in SIDES], 9)
)
def test_the_boundary_moves_while_a_batch_lies_still(make: Make, table: str, side: str) -> None:
    """Past an event that waits, if that is committed, or else is expired: it is in one place."""
    world = make(**KEPT)
    _hour_passes(world, 4)
    _collect(world)
    world.clicks(click("older", 1, NEVER), click("old", 1.5 * HOUR, NEVER))
    points = Points(Stop(table, side))
    with points.watching(), suppress(Killed):
        _hour_passes(world, 5)
    assert points.hit
    world.end()
    _collect(world)
    world.work()
    assert oracle.faults(world.folder, world.tables) == {}
    hosts = {
        name: [row["event_id"].split(":")[0] for row in oracle.rows(world.tables, name)]
        for name in ("expired", "pending")
    }
    assert sorted(hosts["expired"] + hosts["pending"]) == ["old", "older"]
    assert "older" in hosts["expired"]
