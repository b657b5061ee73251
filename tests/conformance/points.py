"""Stopping a process in front of a commit or behind it, as a kill would, within the process of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from clickjoin.model import failpoint

SIDES = ("before", "after")


class Killed(BaseException):
    """The process is gone: nothing that it would do afterwards is done."""


class Stop(NamedTuple):
    """In front of (`before`) or behind (`after`) the nth commit (from 1) to a table."""

    table: str
    side: str
    nth: int = 1

    @property
    def point(self) -> str:
        """The failpoint's name."""
        return f"{self.side}-commit:{self.table}"


class Points:
    """Notes the commits that are reached. `act` is called once, at `stop`; without it the process is killed there."""

    def __init__(self, stop: Stop | None = None, act: Callable[[], object] | None = None) -> None:
        self.seen: list[str] = []
        self.stop, self._act, self.dead, self.hit = stop, act, False, False

    def reach(self, point: str) -> None:
        """In the place of failpoint.reach."""
        if not point.startswith(("before-commit:", "after-commit:")):
            return
        if self.dead:
            raise Killed(point)
        self.seen.append(point)
        stop = self.stop
        if stop and not self.hit and point == stop.point and self.seen.count(point) == stop.nth:
            self.hit = True
            if self._act:
                self._act()
                return
            self.dead = True
            raise Killed(point)

    def commits(self, table: str) -> int:
        """How many commits to a table were made."""
        return self.seen.count(f"after-commit:{table}")

    @contextmanager
    def watching(self) -> Iterator[Points]:
        """See all commits that are made inside."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(failpoint, "reach", self.reach)
            yield self
