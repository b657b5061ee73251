"""A replica stands still at a commit while another, or a copy of its own batch, runs through; then it goes on."""

from __future__ import annotations

import pytest

from tests.conformance import oracle
from tests.conformance.points import SIDES, Points, Stop
from tests.conformance.runs import Make
from tests.conformance.scenarios import JOIN, LANDED
from tests.conformance.world import World
from tests.sampled import some

TABLES = (*LANDED, "registry", "joined", "quarantine", "pending", "filtered")
CASES = [(table, side, other) for table in TABLES for side in SIDES for other in ("west", "main")]


def _through(world: World, other: str) -> None:
    """All that there is to do, by a process that is begun now. `other`: its replica."""
    engine = world.begin(other)
    while engine.join_once() or engine.retry_once():
        pass


@pytest.mark.parametrize(("table", "side", "other"), some(CASES, 7))
def test_a_zombie_goes_on(make: Make, table: str, side: str, other: str) -> None:
    """`other`: `west`, a second replica on the same registry, or `main`, which takes up the very same plan."""
    world = make(**JOIN.fields)
    world.engine()
    JOIN.steps[0].arrive(world)
    points = Points(Stop(table, side), lambda: _through(world, other))
    with points.watching():
        world.work()
    if not points.hit:
        pytest.fail("that commit was never reached")
    for step in JOIN.steps[1:]:
        step.arrive(world)
        world.work()
        _through(world, other)
    copies = 2 if other == "west" else 1
    assert oracle.faults(world.folder, world.tables, copies=copies) == {}
    joined = sorted(row["event_id"].split(":")[0] for row in oracle.rows(world.tables, "joined"))
    assert joined == ["a", "c", "d"]
