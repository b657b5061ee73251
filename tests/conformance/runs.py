"""Carrying a scenario through, undisturbed or cut short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.conformance import oracle
from tests.conformance.points import Killed, Points, Stop
from tests.conformance.scenarios import Scenario
from tests.conformance.world import World

Make = Callable[..., World]


class Undisturbed(NamedTuple):
    """What a scenario comes to, and the commits that it makes."""

    state: oracle.Rows
    points: Points


def undisturbed(make: Make, scenario: Scenario, known: dict[str, Undisturbed]) -> Undisturbed:
    """One run of a scenario that nothing disturbs; `known`: those that were made before."""
    if scenario.name not in known:
        world, points = carried(make, scenario)
        assert oracle.faults(world.folder, world.tables) == {}
        known[scenario.name] = Undisturbed(oracle.state(world.tables), points)
    return known[scenario.name]


def carried(make: Make, scenario: Scenario, stop: Stop | None = None, *, new: bool = True) -> tuple[World, Points]:
    """Carry a scenario through; where it is killed it goes on, by a `new` process or by the one that lives on."""
    world = make(**scenario.fields)
    scenario.begin(world)
    world.engine()
    points = Points(stop)
    with points.watching():
        for step in scenario.steps:
            step.arrive(world)
            try:
                step.work(world)
            except Killed:
                points.dead = False
                if new:
                    world.end()
                step.work(world)
    return world, points


def compare(world: World, wanted: oracle.Rows, why: Any) -> None:
    """Fail where ids are doubled, lost or invented, or a row is another than without what was done."""
    assert (why, oracle.faults(world.folder, world.tables)) == (why, {})
    assert (why, oracle.state(world.tables)) == (why, wanted)
