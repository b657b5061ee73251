"""Times as texts, which replicas read by files of their own, or by rules of a zone that differ between their hosts.

A replica that is refused for that is corrected, as its operator would: it goes on with another one's file, or rules.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from greenlet import getcurrent

from clickjoin.config import Pipeline, streams
from clickjoin.kernel.parse import times
from clickjoin.model import zones
from clickjoin.model.ids import TimeForm, moment
from clickjoin.schemas.format import ZONES

if TYPE_CHECKING:
    from tests.simulator.logs import Logs
    from tests.simulator.model import Lake
    from tests.simulator.world import World

COLUMN, ZONE = "at", "Europe/Berlin"
_TEXT, _OTHERS = "%d.%m.%Y %H:%M:%S.%f", "%d.%m.%Y %H:%M:%S.5%f"  # of one text, other fractions of a second
_FILES = (["iso", _TEXT], ["iso", _OTHERS], ["iso", _TEXT, "%Y/%m/%d"])
_RULES: dict[str, tzinfo] = {"newer": ZoneInfo(ZONE), "older": timezone(timedelta(hours=1, seconds=7))}
_REFUSED = {"forms": "the lake was begun with", "zones": "has other rules on this host"}
_rules_of = zones.rules_of
_host: list[Callable[[], str]] = [lambda: "newer"]


def column(kind: str) -> Any:
    """The event time of a pipeline that begins a lake."""
    return COLUMN if kind == "forms" else {"column": COLUMN, "format": [_TEXT], "zone": ZONE}


def write(kind: str, streams_: Logs) -> None:
    """Have foreign records say their times as texts, which are no later than their times."""
    for row in streams_.foreign:
        if "event_time" in row:
            at = row["event_time"] - timedelta(seconds=1)
            at = at.replace(microsecond=500_000 + at.microsecond // 10)
            local = at.astimezone(ZoneInfo(ZONE if kind == "zones" else "UTC"))
            row["text"] = at.isoformat() if kind == "forms" and at.second % 2 else local.strftime(_TEXT)


def read(text: str, form: TimeForm | None) -> datetime:
    """The time of a text, by the product's own reader."""
    micros, known = times.micros_by(pa.array([text]), form) if form else times.micros_of(pa.array([text]))
    assert known.all(), text
    return moment(int(micros[0]))


class Differing:
    """What each replica of a schedule reads times by."""

    def __init__(self, kind: str, whole: Pipeline, world: World, rng: random.Random, lake: Lake) -> None:
        self._kind, self._whole, self._world = kind, whole, world
        self._choices: list[Any] = rng.sample([*(_FILES if kind == "forms" else _RULES)], 2)
        self._of = dict(zip(("east", "west"), self._choices, strict=True))  # what a replica begins processes with
        self._in: dict[Any, Any] = {}  # what a process has begun with
        if kind == "zones":  # begun by a release that kept none
            for table in ("journal", "shard_timeline"):
                lake.tables[f"{whole.root}/{table}"].settings.pop(ZONES, None)
            _host[0] = lambda: self._in.get(getcurrent(), "newer")

    def pipeline(self, replica: str) -> Pipeline:
        """What a process of a replica begins with."""
        mine = self._in[getcurrent()] = self._of[replica]
        if self._kind == "zones":
            return self._whole
        time = streams.TimeColumn(column=(COLUMN,), format=tuple(mine))
        foreign = self._whole.foreign.model_copy(update={"event_time": time})  # type: ignore[union-attr]
        return self._whole.model_copy(update={"foreign": foreign})

    def corrects(self, replica: str, error: Exception) -> bool:
        """Whether a replica was refused for what it reads by; it has another one's from now on."""
        if _REFUSED[self._kind] not in str(error):
            return False
        refused = self._in[getcurrent()]
        self._of[replica] = next(other for other in self._choices if other != refused)
        self._world.counts["corrected"] = self._world.counts.get("corrected", 0) + 1
        return self._world.counts["corrected"] < 20


@lru_cache
def _digest(zone: str, host: str) -> str:
    return _rules_of(zone)


def install() -> None:
    """Rules of zones are those of the host that asks."""

    def of_host(zone: str) -> tzinfo:
        return _RULES[_host[0]()] if zone == ZONE else ZoneInfo(zone)

    def rules(zone: str) -> str:
        return _digest(zone, _host[0]())

    for module in (zones, times):
        module.ZoneInfo = of_host  # type: ignore[attr-defined]
    for module in (streams, times):
        module.rules_of = rules  # type: ignore[attr-defined]
