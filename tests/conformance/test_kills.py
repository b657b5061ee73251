"""Killed in front of and behind every commit of every table, then carried on: ids are counted, and rows compared."""

from __future__ import annotations

import pytest

from tests.conformance.points import SIDES, Stop
from tests.conformance.runs import Known, Make, carried, compare, undisturbed
from tests.conformance.scenarios import ALL, Scenario
from tests.sampled import FULL, some

KNOWN: Known = {}
CASES = [(scenario, table, side) for scenario in ALL for table in scenario.tables for side in SIDES]


def _named(value: object) -> str:
    return value.name if isinstance(value, Scenario) else str(value)


@pytest.mark.parametrize("scenario", ALL, ids=_named)
def test_a_scenario_commits_to_what_it_says(make: Make, engine: str, scenario: Scenario) -> None:
    done = undisturbed(make, scenario, KNOWN)
    assert [table for table in scenario.tables if not done.points.commits(table)] == []
    if engine == "spark":
        assert done.writers <= {"Apache-Spark"}


@pytest.mark.parametrize(("scenario", "table", "side"), some(CASES, 5), ids=_named)
def test_killed_at_each_commit(make: Make, scenario: Scenario, table: str, side: str) -> None:
    known = undisturbed(make, scenario, KNOWN)
    commits = known.points.commits(table)
    for nth in range(1, commits + 1 if FULL else 2):
        for new in (True, False) if FULL else (bool(nth % 2),):
            world, points = carried(make, scenario, stop := Stop(table, side, nth), new=new)
            if not points.hit:
                pytest.fail(f"{stop} was never reached")
            compare(world, known.state, (stop, new))
