"""The scheduler: one seed decides who goes next, who crashes, who sleeps and wakes as a zombie, and what time it is.

Every process of the product is a greenlet. It gives way before each read of a table and each commit: what lies between
two such points touches nothing that others can see, so every order of effects, and every crash, is one that can be
drawn here.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from greenlet import getcurrent, greenlet

from tests.simulator.model import Lake
from tests.simulator.odds import Odds

_BY_HAND = ("reshard", "harm")  # nobody starts these again


class Crash(BaseException):
    """The process is gone: thrown into it where it stood."""


class Violation(BaseException):
    """The oracle found something that must never be."""


@dataclass(eq=False)
class Process:
    """A running process of one replica; `copy` of how many so far."""

    replica: str
    role: str
    copy: int
    skew: float
    main: Callable[[Process], None]
    wake: float = 0.0
    slept: bool = False
    until: Callable[[], bool] | None = None  # sleeps until this is so
    dead: bool = False
    done: bool = False
    at: tuple[str, str] = ("start", "")
    run: Any = None
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What it is called in a trace."""
        return f"{self.replica}/{self.role}#{self.copy}"


class World:
    """All processes, one lake, one clock."""

    def __init__(self, seed: int, lake: Lake, odds: Odds, *, verbose: bool = False) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.lake = lake
        self.odds = odds
        self.now = 0.0
        self.complete = 0.0  # when all logs are written
        self.live = True  # crashes, zombies and growing logs; then everybody finishes what there is
        self.points = 0
        self.crashes = self.zombies = 0
        self.processes: list[Process] = []
        self.current: Process | None = None
        self.trace: list[str] | None = [] if verbose else None
        self.counts: dict[str, int] = {}  # of what else went wrong
        self.backups: list[dict[str, int]] = []  # versions by path
        self.struck = False  # tables are older than they were: to refuse them is right
        self.refusals: list[str] = []  # what those said who refused
        self.grow: Callable[[], None] = lambda: None
        self.disaster: Callable[[], None] | None = None
        self.disaster_at = 0  # points
        self.hub = getcurrent()
        self._counts: dict[tuple[str, str], int] = {}
        lake.pause, lake.clock, lake.now = self.pause, self.clock, lambda: self.now

    def start(self, replica: str, role: str, skew: float, main: Callable[[Process], None], after: float = 0) -> Process:
        """Start a process, after some seconds."""
        key = (replica, role)
        self._counts[key] = self._counts.get(key, 0) + 1
        made = Process(replica, role, self._counts[key], skew, main, self.now + after)
        made.run = greenlet(lambda: self._body(made), parent=self.hub)
        self.processes.append(made)
        return made

    def _body(self, process: Process) -> None:
        try:
            process.main(process)
        except Crash:
            pass
        except Violation:
            raise
        except Exception:
            raise Violation(f"{process.name} failed:\n{traceback.format_exc(limit=-6)}") from None

    def pause(self, what: str, table: str) -> None:
        """A point: the process gives way, unless it is drawn that it goes on."""
        me = self.current
        if me is None:
            return
        if me.dead:
            raise Crash
        self.points += 1
        self.now += self.random.random() * self.odds.tick
        me.at = (what, table)
        if self.trace is not None:
            self.trace.append(f"{self.now - START:9.2f} {me.name:16} {what} {table}")
        if me.slept or me.at in self.odds.weak or self.random.random() >= self.odds.stay:
            self._give_way(me)

    def sleep(self, seconds: float) -> None:
        """The current process sleeps."""
        me = self.current
        if me is None:
            return
        if me.dead:
            raise Crash
        me.wake = self.now + seconds
        self._give_way(me)

    def clock(self) -> float:
        """The time, by the current process's clock."""
        return self.now + (self.current.skew if self.current else 0.0)

    def _give_way(self, me: Process) -> None:
        self.hub.switch()
        if me.dead:
            raise Crash

    def note(self, text: str) -> None:
        """A line in the trace."""
        if self.trace is not None:
            who = self.current.name if self.current else "-"
            self.trace.append(f"{self.now - START:9.2f} {who:16} {text}")

    def run(self) -> None:
        """Until nobody has anything to do."""
        while True:
            if self.disaster and self.live and self.points > self.disaster_at:
                strike, self.disaster = self.disaster, None
                strike()
            if self.live and self.points > self.odds.points:
                self.settle()
            self.grow()
            ready = [p for p in self.processes if p.wake <= self.now or (p.until and p.until())]
            if not ready:
                if not self.processes:
                    return
                self.now = min(p.wake for p in self.processes)
                continue
            chosen = ready[int(self.random.random() * len(ready))]
            self._resume(chosen)
            if (self.live or chosen.slept) and not chosen.done:
                self._fate(chosen)
            if self.points > 60_000:
                raise Violation(f"no end: {[(p.name, p.at) for p in self.processes]}")

    def _resume(self, process: Process) -> None:
        self.current, process.until = process, None
        process.wake = min(process.wake, self.now)
        try:
            process.run.switch()
        finally:
            self.current = None
        if process.run.dead:
            process.done = True
            self.processes.remove(process)

    def _fate(self, process: Process) -> None:
        drawn = self.random.random()
        # Whoever wakes late is stopped soon: what a zombie leaves half done is where the finer faults lie.
        fatal = self.odds.fatal
        if drawn < (fatal.get(process.at, 0.01 if fatal else 0.1) if process.slept else self.odds.crash):
            self.kill(process)
            self.crashes += 1
            if self._copies(process) == 0 and process.role not in _BY_HAND:
                self.start(process.replica, process.role, process.skew, process.main, self.random.uniform(0, 20))
            return
        likely, low, high = self.odds.weak.get(process.at, (self.odds.sleep, 1, self.random.choice([8, 30, 120])))
        if self.live and self.random.random() < likely:
            process.wake = self.now + self.random.uniform(low, high)
            self._awaits(process)
            self.note(f"{process.name} falls asleep before {' '.join(process.at)}")
            # Who is taken for dead is a zombie when he wakes.
            if process.role not in _BY_HAND and self.random.random() >= self.odds.slow and self._copies(process) < 3:
                self.zombies += 1
                process.slept = True
                self.start(process.replica, process.role, process.skew, process.main)

    def _awaits(self, process: Process) -> None:
        what = self.odds.until.get(process.at)
        if not what:
            return
        table = next(table for table in self.lake.tables.values() if table.name == what[1:])
        seen, more = len(table.commits), self.random.randint(1, 8)
        if what[0] == "+":
            process.until = lambda: len(table.commits) >= seen + more
        else:
            process.until = lambda: any(commit.removes for commit in table.commits[seen:])
        process.wake += 1e6

    def _copies(self, of: Process) -> int:
        return sum((p.replica, p.role) == (of.replica, of.role) for p in self.processes)

    def kill(self, process: Process) -> None:
        """A process is gone at the point where it stands."""
        self.note(f"{process.name} crashes before {' '.join(process.at)}")
        process.dead = True
        if process.run:
            self._resume(process)
        else:  # it has not begun
            process.done = True
            self.processes.remove(process)
        assert process.done, process.name

    def stop_all(self, replica: str = "") -> list[Process]:
        """Nobody runs any more, or none of a replica; returns those that somebody will start again."""
        stopped = [process for process in self.processes if replica in ("", process.replica)]
        for process in stopped:
            self.kill(process)
        first = {(p.replica, p.role): p for p in reversed(stopped) if p.role not in _BY_HAND}
        return list(first.values())

    def settle(self) -> None:
        """From now on all is well but for those who sleep: they wake soon, and may crash."""
        self.live = False
        self.now = max(self.now, self.complete)
        for process in self.processes:
            late = 30 if process.until is None else 200
            process.wake = min(process.wake, self.now + self.random.uniform(0, late))

    def end(self) -> None:
        """Let go of all that still runs."""
        for process in list(self.processes):
            process.dead = True
            if process.run:
                process.run.throw(Crash)
        self.processes.clear()
        self.lake.pause = lambda what, table: None


START = 1_772_370_000.0  # 2026-03-01 13:00 UTC
__all__ = ["START", "Crash", "Odds", "Process", "Violation", "World"]
