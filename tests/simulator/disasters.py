"""What goes wrong besides crashes: answers that are lost, tables that are put back, power cuts, outages."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulator.model import Table
    from tests.simulator.world import World

# What somebody restores alone: all that holds a pipeline's state.
_RESTORED = ("registry", "journal", "joined", "pending", "primary", "foreign", "filtered", "unjoinable", "expired",
             "registry_boundary", "shard_timeline")  # fmt: skip
Past = dict[str, int]  # version by path


class Unheard:
    """Of some commits the caller hears what is not so, or nothing."""

    def __init__(self, world: World, share: float) -> None:
        self._world = world
        self._share = share

    def __call__(self, table: Table) -> str:
        """What is heard of a commit that landed."""
        world = self._world
        if not (self._share and world.current and world.live) or world.random.random() >= self._share:
            return ""
        heard = world.random.choice(["refused", "unknown"])
        world.counts["unheard"] = world.counts.get("unheard", 0) + 1
        world.note(f"hears of its version {table.newest.version} of {table.name}: {heard}")
        return heard


def prepare(world: World, rng: random.Random, kind: str) -> None:
    """Have a disaster strike in the middle of a schedule, once."""
    if not kind:
        return
    named = {"restore": _RESTORED, "restore-pending": ("pending",), "restore-live": _RESTORED}.get(kind)
    others = {"restore-upstream": _RestoreUpstream, "restore-backup": _RestoreBackup, "outage": _Outage}
    if kind in others:
        strike = others[kind](world, rng).strike
    else:
        restored = _Older if kind == "restore-live" else _Restore
        strike = restored(world, rng, named).strike if named else _Power(world, rng).strike
    world.disaster, world.disaster_at = strike, round(world.odds.points * rng.uniform(0.3, 0.9))


class _Disaster:
    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng

    def strike(self) -> None:
        """All stop; it happens; all start again."""
        world = self._world
        stopped = world.stop_all()
        self._happen(list(world.lake.tables.values()))
        for old in stopped:
            world.start(old.replica, old.role, old.skew, old.main, self._rng.uniform(0, 20))

    def _happen(self, tables: list[Table]) -> None:
        raise NotImplementedError

    def _put_back(self, table: Table, version: int, what: str) -> None:
        world = self._world
        if version >= table.newest.version:
            return
        world.note(f"{what}: {table.name} is at version {version} again, and no longer at {table.newest.version}")
        world.counts[what] = world.counts.get(what, 0) + 1
        table.cut(version)
        world.struck = True
        world.lake.changed(table)


class _Outage(_Disaster):
    """A replica is down, with all of its processes, for minutes: what it had read, and what waits for it, grows old."""

    def strike(self) -> None:
        """They stop; they start again."""
        world, replica = self._world, self._rng.choice(["east", "west"])
        world.note(f"{replica} is down")
        world.counts["outages"] = 1
        for old in world.stop_all(replica):
            world.start(old.replica, old.role, old.skew, old.main, self._rng.uniform(100, 400))


class _Saved(_Disaster):
    """What was at some moments is known, so that it can be put back."""

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng)
        self._saved: list[Past] = []
        self._save_at = world.random.randint(1, 60)
        pause = world.pause

        def pause_and_save(what: str, table: str) -> None:
            if world.points > self._save_at:
                self._save_at = world.points + 40
                self._saved.append({path: each.newest.version for path, each in world.lake.tables.items()})
            pause(what, table)

        world.lake.pause = pause_and_save

    def _all_back(self, tables: list[Table]) -> None:
        past = self._rng.choice(self._saved)
        for table in tables:
            self._put_back(table, past.get(table.path, 0), "restored")
        self._world.struck = False  # all are of one moment: as after a crash


class _RestoreUpstream(_Saved):
    """All tables of the first pipeline of a chain are put back to what they were at one moment."""

    def _happen(self, tables: list[Table]) -> None:
        if self._saved:
            first = tables[0].path.rsplit("/", 1)[0]
            self._all_back([table for table in tables if table.path.startswith(f"{first}/")])


class _RestoreBackup(_Disaster):
    """All tables are put back to what a backup has of them."""

    def _happen(self, tables: list[Table]) -> None:
        if self._world.backups:
            past = self._rng.choice(self._world.backups[-3:])
            for table in tables:
                self._put_back(table, past.get(table.path, 0), "restored")
            self._world.struck = False


class _Restore(_Saved):
    """One table is put back to an older version, or all are to what they were at one moment."""

    def __init__(self, world: World, rng: random.Random, named: tuple[str, ...]) -> None:
        super().__init__(world, rng)
        self._named = named

    def _happen(self, tables: list[Table]) -> None:
        if self._named == _RESTORED and self._rng.random() < 0.3 and self._saved:
            self._all_back(tables)
            return
        known = [table for table in tables if table.name in self._named and table.newest.version > 0]
        if not known:
            return
        grown = self._rng.choice(sorted(known, key=lambda table: table.name))
        self._put_back(grown, max(grown.newest.version - self._rng.randint(1, 8), 0), "restored")


class _Older(_Restore):
    """The store is older than it was, and whoever works on it lives on; nobody notices at once."""

    def strike(self) -> None:
        """It happens; whoever works on it refuses to go on, or starts again and is refused."""
        self._happen(list(self._world.lake.tables.values()))
        self._world.struck = True


class _Power(_Disaster):
    """Of each table the newest versions are gone that were not flushed: none of them, some, or all."""

    def _happen(self, tables: list[Table]) -> None:
        for table in tables:
            least = min(table.durable, table.newest.version)
            if self._rng.random() < 0.7:
                self._put_back(table, self._rng.randint(least, table.newest.version), "power")
