"""How a schedule is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass
class Odds:
    """How a schedule is drawn: chances at each point, and seconds that go by at one."""

    stay: float  # the same process goes on
    crash: float
    sleep: float  # for long
    slow: float  # share of those that sleep who are only slow; for the others another copy takes over
    tick: float
    points: int  # before crashes and sleeping end
    # Points at which this schedule likes to put processes to sleep: how likely, and from and to how many seconds.
    weak: Mapping[tuple[str, str], tuple[float, float, float]]
    # Where they then sleep until this table has got some commits (`+` before its name), or has lost files (`-`).
    until: Mapping[tuple[str, str], str]
    fatal: Mapping[tuple[str, str], float]  # points at which one that has slept is likely to crash
