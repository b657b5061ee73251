"""Backups by the product's own look for a moment at which nothing is committed; one of them is put back later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clickjoin.backup import processed, snapshot
from clickjoin.lake.snapshot_files import Look
from clickjoin.model.errors import LakeError
from tests.simulator import rust

if TYPE_CHECKING:
    from tests.simulator.actors import Cast
    from tests.simulator.world import Process

_MOVING = ("registry", "joined", "journal", "state", "signals")  # others may move at one of these looks
_WAIT = 1e9  # seconds, by the real clock: a backup ends with its process


def install() -> None:
    """Have the product look at the model's tables."""
    snapshot.look = processed.look = _look


def _look(root: str, name: str) -> Look | None:
    lake = rust.lake()
    if name in _MOVING:
        lake.pause("look", name)
    table = lake.table(f"{root}/{name}")
    return Look(table.newest.version, table.path) if table else None


def taker(cast: Cast) -> Callable[[Process], None]:
    """A process that takes one backup after another, until the logs are complete."""

    def main(process: Process) -> None:
        world = cast.world
        while world.live:
            try:
                found = snapshot.cut(cast.pipeline.root, _WAIT, world.sleep)
            except LakeError as error:  # tables of the processing that are just being made
                world.note(str(error))
            else:
                world.backups.append({f"{cast.pipeline.root}/{name}": seen.version for name, seen in found.items()})
                world.counts["backups"] = world.counts.get("backups", 0) + 1
            world.sleep(world.random.uniform(0, 5))

    return main
