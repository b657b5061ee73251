"""A replica stands still at a commit while another, or a copy of its own batch, runs through; then it goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from clickjoin.model.errors import DateBusy
from tests.conformance import oracle
from tests.conformance.points import SIDES, Killed, Points, Stop
from tests.conformance.runs import Make
from tests.conformance.scenarios import DATED, JOIN, LANDED, LATE, TYPED, by_date, close_once
from tests.conformance.world import World, click
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


def _killed(world: World, replica: str, stop: Stop) -> None:
    """A process that is begun now, and killed where it gets so far."""
    with suppress(Killed), Points(stop).watching():
        world.begin(replica).join_once()


@pytest.mark.parametrize("table", some(["pending", "registry"], 2))
def test_a_copy_claims_what_this_one_has_not_found(make: Make, table: str) -> None:
    """One has found no query, and stands still; another replica lands the query, a copy claims: both are killed."""
    world = make(**JOIN.fields)
    world.engine()
    world.clicks(click("c", 6, LATE, position=1))

    def meanwhile() -> None:
        world.queries(LATE)
        _killed(world, "west", Stop("registry", "before"))
        _killed(world, "main", Stop("joined", "before"))

    points = Points(Stop(table, "before"), meanwhile)
    with points.watching():
        world.work()
    assert points.hit
    world.now += 11
    world.work()
    world.work("west")
    assert oracle.faults(world.folder, world.tables, copies=2) == {}
    assert [row["event_id"].split(":")[0] for row in oracle.rows(world.tables, "joined")] == ["c"]


def refused(world: World) -> None:
    """Another run does not get the date."""
    try:
        close_once(world)
    except DateBusy:
        return
    raise AssertionError("two runs work on one date")


@pytest.mark.parametrize(("table", "other"), [("dates", close_once), ("joined", refused)])
def test_two_runs_on_one_date(make: Make, table: str, other: Callable[..., None]) -> None:
    """One stands still while it takes the date, or while it replaces the date's rows; another run comes meanwhile."""
    world = make(**DATED, **TYPED)
    JOIN.steps[0].arrive(world)
    world.work()
    before = oracle.state(world.tables)["joined"]
    points = Points(Stop(table, "before"), lambda: other(world))
    with points.watching():
        close_once(world)
    assert points.hit
    by_date(world)
    assert oracle.state(world.tables)["joined"] == before
    assert oracle.faults(world.folder, world.tables) == {}
    assert "held" not in {row["state"] for row in oracle.rows(world.tables, "dates")}
