"""The streams of a schedule: few events over some buckets, with repeats, late queries and orphans, in growing logs."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clickjoin.sources.base import RECORDS_DDL, Budget, Position, Slice, SourcePlan
from tests.simulator.frames import DataFrame
from tests.simulator.values import names_of_ddl
from tests.simulator.world import START, World

if TYPE_CHECKING:
    from clickjoin.events import RecordSpec

_COLUMNS = names_of_ddl(RECORDS_DDL)
_LENGTH = 100


@dataclass
class Logs:
    """Records of both streams in the order in which they are written; how many are written so far."""

    primary: list[dict[str, Any]] = field(default_factory=list)
    foreign: list[dict[str, Any]] = field(default_factory=list)
    written: dict[str, int] = field(default_factory=lambda: {"primary": 0, "foreign": 0})

    def stream(self, name: str) -> list[dict[str, Any]]:
        """Records of one stream."""
        return self.primary if name == "primary" else self.foreign

    def grow(self, rng: random.Random, *, all_of_it: bool = False) -> None:
        """Write on."""
        for name in ("primary", "foreign"):
            whole = len(self.stream(name))
            if all_of_it:
                self.written[name] = whole
            elif self.written[name] < whole and rng.random() < 0.06:
                self.written[name] = min(whole, self.written[name] + 1 + int(rng.random() * 4))


def moment(seconds: float) -> datetime:
    """A time, so many seconds after the schedule's start."""
    return datetime.fromtimestamp(START + seconds, UTC)


def event_id(host: str, seconds: float) -> str:
    """An id in Photon's form."""
    return f"{host}:1:{round((START + seconds) * 1_000_000)}"


def draw(rng: random.Random, since: float, until: float) -> Logs:
    """Queries and clicks of event times between two moments (seconds from the start)."""
    logs = Logs()
    queries = [(f"q{n}", round(rng.uniform(since, until), 3)) for n in range(rng.randint(3, 7))]
    for host, at in queries:
        logs.primary.append(_record(host, at, None))
        if rng.random() < 0.2:
            logs.primary.append(_record(host, at, None))
    for n in range(rng.randint(5, 12)):
        host, at = queries[int(rng.random() * len(queries))]
        if rng.random() < 0.15:
            host = f"orphan{n}"
        made = _record(f"{'drop' if rng.random() < 0.15 else 'c'}{n}", at + rng.uniform(0, 20), (host, at))
        logs.foreign += [made] * (2 if rng.random() < 0.25 else 1)
    rng.shuffle(logs.primary)
    rng.shuffle(logs.foreign)
    if rng.random() < 0.3:
        logs.foreign.insert(0, {"reason": "broken-json", "raw": b"{"})
    return logs


def _record(host: str, at: float, of: tuple[str, float] | None) -> dict[str, Any]:
    made: dict[str, Any] = {"event_id": event_id(host, at), "event_time": moment(at)}
    if of:
        made |= {"primary_id": event_id(*of), "primary_time": moment(of[1])}
    text = {name: value for name, value in made.items() if name.endswith("_id")}
    return made | {"payload": json.dumps(text)}


class LogSource:
    """The Source port over one stream."""

    def __init__(self, world: World, logs: Logs, stream: str) -> None:
        self._world = world
        self._logs = logs
        self._stream = stream

    def plan(self, positions: Mapping[str, Position], budget: Budget) -> SourcePlan:
        """What was written and not planned yet, as far as the budget goes."""
        self._world.pause("list", f"log of {self._stream}")
        name, written = f"{self._stream}-log", self._logs.written[self._stream]
        at = positions[name].offset // _LENGTH if name in positions else 0
        end = min(written, at + budget.max_events)
        if end <= at:
            return SourcePlan()
        piece = Slice(name, name, at * _LENGTH, end * _LENGTH, 0, "", 0, "", end - at)
        done = Position(name, name, 1, 1, end * _LENGTH, written * _LENGTH, 0, 0, "", 0, "")
        left = written - end
        return SourcePlan((piece,), (done,), left * _LENGTH, left)

    def lost(self, slices: Sequence[Slice]) -> dict[str, str]:
        """Nothing is ever lost here."""
        return {}

    def read(self, spark: Any, slices: Sequence[Slice], spec: RecordSpec) -> DataFrame:
        """The records of the slices."""
        rows = []
        blank = dict.fromkeys(_COLUMNS)
        for piece in slices:
            for at in range(piece.start // _LENGTH, piece.end // _LENGTH):
                place = {
                    "path": piece.path,
                    "generation": piece.generation,
                    "offset": at * _LENGTH,
                    "length": _LENGTH - 1,
                }
                rows.append(blank | self._logs.stream(self._stream)[at] | place)
        return DataFrame(spark, _COLUMNS, lambda: rows)
