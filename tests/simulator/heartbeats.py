"""Batches of no records that say that time has passed; and what must hold of them, and of all watermarks.

The oracle of these reads the journal's rows as text, and knows the logs: what was written when.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from clickjoin.config import Pipeline
from tests.simulator.logs import SKEW
from tests.simulator.values import micros
from tests.simulator.world import Violation

if TYPE_CHECKING:
    from tests.simulator.logs import Logs
    from tests.simulator.model import Commit, Lake, Table

BEHIND = 40.0  # seconds: logs are out of order by 30, and a writer's clock and a replica's are wrong by 5 each
IDLE = 20.0  # seconds to a stream's rest
GOES_ON = 5 * IDLE  # seconds of time alone once the logs are complete and read
_CLOSE = {"max_out_of_orderness": f"{BEHIND:.0f}s", "idle_timeout": f"{IDLE:.0f}s"}
_SECTION = {"key": "bucket", "processor": "clickjoin.processors:TumblingCounts"}


@lru_cache
def beating(fields: str, *, by_itself: bool) -> Pipeline:
    """A pipeline whose joins plan such batches: for a processing of its own, or for that of another one."""
    whole = json.loads(fields) | {"close": _CLOSE}
    if by_itself:
        whole["process"] = _SECTION
    else:
        whole["batch"]["heartbeats"] = True
    return Pipeline.model_validate(whole)


def trouble(rng: random.Random, logs: Logs) -> None:
    """Logs that are written as they are due, but for a stall; and that cannot be read for a while."""
    for name in ("primary", "foreign"):
        logs.pace[name] = rng.choice([0.1, 0.5, 1.0])
        for spans, likely, most in ((logs.stalls, 0.5, 60), (logs.unreadable, 0.7, 120)):
            if rng.random() < likely:
                begin = rng.uniform(0, 150)
                spans[name] = begin, begin + rng.uniform(5, most)


@dataclass(frozen=True)
class Mark:
    """What a plan says of a stream: its watermark and that of the plan before (microseconds), how many records of the
    log are read with it, and how many were there when the log was looked at."""

    batch: str
    stream: str
    before: int
    mark: int
    read: int
    there: int


class Heartbeats:
    """Watches one pipeline's journal and tables."""

    def __init__(self, lake: Lake, root: str, logs: Logs) -> None:
        self.tokens: set[str] = set()  # those of batches of no records
        self._root, self._logs, self._before = root, logs, lake.seen
        self._name = root.rsplit("/", 1)[-1]
        self._marks = list[Mark]()
        self._planned_marks: dict[str, int | None] = {}  # of a batch: the least of its streams' watermarks
        self._known: dict[tuple[str, str], tuple[int, int]] = {}  # of a replica's stream: watermark, records read
        self._given_up: set[str] = set()  # events that were joined so late that nothing waits for them
        lake.seen = self.seen

    def seen(self, table: Table, commit: Commit) -> None:
        """After every commit. Errors: Violation."""
        self._before(table, commit)
        rows = [row for file in commit.adds for row in file.rows]
        if table.path == f"{self._root}/journal":
            for row in rows:
                if (row["sequence"], row["state"]) == ("join", "planned"):
                    self._planned(json.loads(row["plan"]))
        elif table.path == f"{self._root}/metrics":
            self._settled(rows)
        elif table.name in ("unjoinable", "expired"):
            self._given_up |= {row["event_id"] for row in rows}
        if mine := self.tokens & {row.get("token", "") for row in rows}:
            raise Violation(f"doubled: a batch of no records has rows in {table.name}: {sorted(mine)}")

    def _settled(self, rows: list[dict[str, Any]]) -> None:
        """What a batch says that it has come to is what the one plan of its number says."""
        for row in rows:
            batch = f"{self._name}/{row['replica']}/{row['sequence']}/{row['batch']}"
            at = None if row["watermark"] is None else micros(row["watermark"])
            if row["sequence"] == "join" and at != self._planned_marks[batch]:
                raise Violation(f"watermark differs: {batch} ends at {at}, planned was {self._planned_marks[batch]}")

    def _planned(self, plan: dict[str, Any]) -> None:
        batch = f"{plan['pipeline']}/{plan['replica']}/join/{plan['number']}"
        if not plan["splits"]:
            self.tokens.add(batch)
        known = plan["watermarks"].values()
        self._planned_marks[batch] = min(known) if len(known) == 2 else None
        for stream in ("primary", "foreign"):
            key = plan["replica"], stream
            before, read = self._known.get(key, (0, 0))
            for offset in plan["offsets"].get(stream, ()):
                read = self._logs.records(offset["payload"]["offset"])
            mark = plan["watermarks"].get(stream, 0)
            if mark < before:
                raise Violation(f"watermark went back: {batch} has {stream} at {mark}, and before it was at {before}")
            self._known[key] = mark, read
            self._marks.append(Mark(batch, stream, before, mark, read, self._logs.looked_at(stream)))

    def at_the_end(self, late: list[dict[str, Any]]) -> None:
        """No watermark has passed what was unread, and no event is late that was in order. Errors: Violation."""
        bounds = {name: list(self._bounds(name)) for name in ("primary", "foreign")}
        for each in self._marks:
            for at, (event, bound) in enumerate(bounds[each.stream]):
                passed = at >= each.read and each.before <= event < each.mark
                if passed and (at < each.there or event >= bound):
                    kind = "a batch of no records" if each.batch in self.tokens else "a batch"
                    raise Violation(f"watermark passed what is unread: {each}, {kind}; record {at} is of {event}")
        self._late(late, bounds["foreign"])

    def _bounds(self, stream: str) -> Iterator[tuple[int, int]]:
        """Of each record its event's time, and how far the watermark may have come before the record was written.

        As far as the newest event of the log, or as the clock where the log was at rest. -1: no event.
        """
        newest = rested = last = 0.0
        for row, at in zip(self._logs.stream(stream), self._logs.times[stream], strict=True):
            if at - last >= IDLE - 2 * SKEW:
                rested = at + SKEW
            bound = round((max(newest, rested) - BEHIND) * 1e6)
            yield (micros(row["event_time"]) if "event_time" in row else -1), bound
            newest, last = max(newest, row["event_time"].timestamp() if "event_time" in row else 0), at

    def _late(self, late: list[dict[str, Any]], bounds: list[tuple[int, int]]) -> None:
        first: dict[str, bool] = {}
        for row, (event, bound) in zip(self._logs.foreign, bounds, strict=True):
            if "event_id" in row:
                first.setdefault(row["event_id"], event >= bound)
        wrong = {row["event_id"] for row in late if first[row["event_id"]]} - self._given_up
        if wrong:
            raise Violation(f"signals lack what was in order: {sorted(wrong)} came behind the watermark")
