"""Carrying a scenario through, undisturbed or cut short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from tests.conformance import oracle
from tests.conformance.points import Killed, Points, Stop
from tests.conformance.scenarios import Scenario
from tests.conformance.world import World

Make = Callable[..., World]
Known: TypeAlias = "dict[tuple[Make, str], Undisturbed]"


class Undisturbed(NamedTuple):
    """What a scenario comes to, the commits that it makes, and who has made those."""

    state: oracle.Rows
    points: Points
    writers: set[str]


def undisturbed(make: Make, scenario: Scenario, known: Known) -> Undisturbed:
    """One run of a scenario that nothing disturbs; each engine leaves the same rows. `known`: those made before."""
    if (make, scenario.name) not in known:
        world, points = carried(make, scenario)
        assert oracle.faults(world.folder, world.tables) == {}
        done = Undisturbed(oracle.state(world.tables), points, oracle.writers(world.tables))
        assert all(one.state == done.state for (_, name), one in known.items() if name == scenario.name)
        known[make, scenario.name] = done
    return known[make, scenario.name]


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
