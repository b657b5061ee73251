"""What earlier dates were like: from the rows of table `quality`, the newest run of each date."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import median
from typing import Any

from clickjoin.kernel.filesystem import local_folder
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.location import location
from clickjoin.model.errors import LakeError
from clickjoin.model.reporter import figure
from clickjoin.schemas import QUALITY

LATER = {"share": "DOUBLE"}  # columns that a table which an earlier version made has not
_COLUMNS = ("run", "at", "date", "suite", "check", "observed", "samples")


@dataclass(frozen=True)
class Usual:
    """What is usual for a figure: the median of so many dates; `weekday`: only of dates of the same weekday."""

    value: float
    dates: int
    weekday: bool

    @property
    def text(self) -> str:
        """In words."""
        return f"{figure(self.value)}, median of {self.dates} earlier {'same weekdays' if self.weekday else 'dates'}"


class History:
    """Rows of dates before `day`, no more than `days` before; `least`: how many it takes to say what is usual.

    Weeks have their own rhythm: where enough dates of the same weekday are there, only these count.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], day: date, days: int, least: int) -> None:
        self._day, self._least = day, least
        self._runs: dict[tuple[str, str], dict[date, Mapping[str, Any]]] = {}  # by suite and check
        newest: dict[date, tuple[Any, str]] = {}
        kept = [row for row in rows if day - timedelta(days=days) <= row["date"] < day]
        for row in kept:
            newest[row["date"]] = max(newest.get(row["date"], (row["at"], row["run"])), (row["at"], row["run"]))
        for row in kept:
            if (row["at"], row["run"]) == newest[row["date"]]:
                self._runs.setdefault((row["suite"], row["check"]), {})[row["date"]] = row

    def usual(self, suite: str, check: str) -> Usual | None:
        """What is usual for a figure; None where too few dates have it."""
        rows = self._runs.get((suite, check), {})
        values = {when: float(row["observed"]) for when, row in rows.items() if row["observed"] is not None}
        same = [value for when, value in values.items() if when.weekday() == self._day.weekday()]
        if len(same) >= self._least:
            return Usual(median(same), len(same), weekday=True)
        return Usual(median(values.values()), len(values), weekday=False) if len(values) >= self._least else None

    def day_before(self, suite: str, check: str) -> float | None:
        """A figure of the day before; None where it is not known, or 0."""
        row = self._runs.get((suite, check), {}).get(self._day - timedelta(days=1))
        return float(row["observed"]) if row and row["observed"] else None

    def schema(self, suite: str, *checks: str) -> tuple[str, dict[str, str]]:
        """The newest date that has a schema among the samples of some checks, and that schema with its types."""
        rows = [row for check in checks for row in self._runs.get((suite, check), {}).values()]
        held = [(row["date"].isoformat(), row["samples"]) for row in rows if row["samples"] not in (None, "[]")]
        when, text = max(held, default=("", "[{}]"))
        first: Any = json.loads(text)[0]
        return when, dict(first) if isinstance(first, Mapping) else {}


def read(delta: DeltaReader, day: date, days: int, least: int) -> History:
    """The history of a date.

    Errors: LakeError where table `quality` cannot be read, or is not the one that this version writes.
    """
    filters = [("date", ">=", day - timedelta(days=days)), ("date", "<", day)]
    try:
        held = delta.columns("quality")
        rows = delta.read("quality", filters, list(_COLUMNS)).to_pylist()
    except Exception as error:  # whatever lies there instead: broken log, missing or broken files, another table
        raise unreadable(delta, str(error).splitlines()[0] if str(error) else type(error).__name__) from error
    if lacking := [name for name in QUALITY.names if name not in (*held, *LATER)]:
        raise unreadable(delta, f"it has no column {', '.join(lacking)}")
    return History(rows, day, days, least)


def unreadable(delta: DeltaReader, why: str) -> LakeError:
    """Table `quality` is of no use: what to do about it."""
    return LakeError(
        f"{delta.path('quality')}: table `quality` cannot be read ({why[:300].rstrip('. ')})",
        remedy="Move this folder away, or restore it, and run it again: an empty one is made, and checks that are held "
        "against earlier dates stay undecided until it has some",
    )


def require_store(root: str) -> None:
    """Check that table `quality` can be read, or made where it is not there. Errors: LakeError."""
    delta, place = DeltaReader(root), local_folder(f"{root}/quality")
    if place and place.exists() and not place.is_dir():
        raise unreadable(delta, "it is a file, and no folder")
    if delta.exists("quality"):
        read(delta, date.today(), 1, 1)
    elif location(f"{root}/quality").listed():
        raise unreadable(delta, "something else is in its place")
