"""The streams of a schedule: few events over some buckets, with repeats, late queries and orphans, in growing logs."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from greenlet import getcurrent

from clickjoin.kernel.read_lines import SCHEMA
from clickjoin.model.split import Budget, Problem, SourceOffset, SourcePlan, Split
from clickjoin.sources.completeness import Completeness, Evidence
from clickjoin.sources.files.completeness import check
from clickjoin.sources.files.state import FilePosition, FileSplit
from clickjoin.sources.port import RECORDS_DDL, Source
from tests.simulator import frames, local_times
from tests.simulator.values import micros, names_of_ddl
from tests.simulator.world import START, World

if TYPE_CHECKING:
    from clickjoin.model.ids import RecordSpec

_COLUMNS = names_of_ddl(RECORDS_DDL)
_LENGTH = 100
SKEW = 5.0  # seconds that a writer's clock may be ahead, and a replica's wrong


@dataclass
class Logs:
    """Records of both streams in the order in which they are written; how many are written so far."""

    primary: list[dict[str, Any]] = field(default_factory=list)
    foreign: list[dict[str, Any]] = field(default_factory=list)
    written: dict[str, int] = field(default_factory=lambda: {"primary": 0, "foreign": 0})
    pace: dict[str, float] = field(default_factory=dict)
    clocks_are_wrong: bool = False  # by more than the writers' own
    times: dict[str, list[float]] = field(default_factory=lambda: {"primary": [], "foreign": []})  # of writing, each
    stalls: dict[str, tuple[float, float]] = field(default_factory=dict)  # seconds from the start: nothing is written
    unreadable: dict[str, tuple[float, float]] = field(default_factory=dict)  # the same: nobody can look
    is_missing_at_first: bool = False  # a log that nobody has written to yet is no file
    _looks: dict[Any, int] = field(default_factory=dict)  # by process and stream: records at its last look

    def stream(self, name: str) -> list[dict[str, Any]]:
        """Records of one stream."""
        return self.primary if name == "primary" else self.foreign

    def grow(self, rng: random.Random, now: float, *, all_of_it: bool = False) -> None:
        """Write on: what is due by now, at each stream's own pace."""
        for name in ("primary", "foreign"):
            whole, at = self.stream(name), self.written[name]
            if all_of_it:
                self.written[name] = len(whole)
            elif at < len(whole) and not _within(self.stalls, name, now) and rng.random() < self.pace[name]:
                end = min(len(whole), at + 1 + int(rng.random() * 4))
                while at < end and whole[at]["due"] <= now:
                    at += 1
                self.written[name] = at
            self.times[name] += [now] * (self.written[name] - len(self.times[name]))

    def can_be_read(self, name: str, now: float) -> bool:
        """Whether a look at a stream's log finds what is there."""
        self._looks[getcurrent(), name] = self.written[name]
        return not _within(self.unreadable, name, now)

    def looked_at(self, name: str) -> int:
        """How many records were there when the process that asks has looked."""
        return self._looks[getcurrent(), name]

    def records(self, offset: int) -> int:
        """How many records lie before an offset."""
        return offset // _LENGTH

    def read(self, offsets: Mapping[str, SourceOffset]) -> int:
        """How many records lie before the offsets of a stream."""
        return max((self.records(FilePosition.of(offset).offset) for offset in offsets.values()), default=0)

    def all_read(self, name: str, offsets: Mapping[str, SourceOffset]) -> bool:
        """Whether nothing of a stream is left to be read from its offsets."""
        return self.read(offsets) == len(self.stream(name))

    def repeat(self, rng: random.Random, restamped: float = 0.0) -> None:
        """Write some records of the foreign stream again, later on: as a stream alone has them.

        `restamped` (seconds): each copy has a time of its own, no further than that from the first's.
        """
        again = [row | {"due": row["due"] + rng.uniform(1, 200)} for row in self.foreign if rng.random() < 0.6]
        for row in again if restamped else []:
            if "event_time" in row:
                at = micros(row["event_time"]) / 1e6 + rng.uniform(-restamped, restamped)
                row["event_time"] = moment(min(at, row["due"]) - START)
        self.foreign = sorted([*self.foreign, *again], key=lambda row: float(row["due"]))

    @property
    def last(self) -> float:
        """When the last record is due."""
        return max((row["due"] for row in (*self.primary, *self.foreign)), default=START)


def _within(spans: Mapping[str, tuple[float, float]], name: str, now: float) -> bool:
    begin, end = spans.get(name, (0, 0))
    return begin <= now - START < end


def moment(seconds: float) -> datetime:
    """A time, so many seconds after the schedule's start."""
    return datetime.fromtimestamp(START + seconds, UTC)


def event_id(host: str, seconds: float) -> str:
    """An id in Photon's form."""
    return f"{host}:1:{round((START + seconds) * 1_000_000)}"


def draw(rng: random.Random, since: float, until: float, late: tuple[float, float]) -> Logs:
    """Queries and clicks of event times between two moments (seconds from the start), in the order they are due."""
    logs = Logs(pace={name: rng.choice([0.01, 0.03, 0.1]) for name in ("primary", "foreign")})
    queries = [(f"q{n}", round(rng.uniform(since, until), 3)) for n in range(rng.randint(3, 7))]
    for host, at in queries:
        logs.primary += [_record(rng, host, at, None, late) for _ in range(2 if rng.random() < 0.2 else 1)]
    for n in range(rng.randint(5, 12)):
        host, at = queries[int(rng.random() * len(queries))]
        if rng.random() < 0.15:
            host = f"orphan{n}"
        own = f"{'drop' if rng.random() < 0.15 else 'c'}{n}", at + rng.uniform(0, 20)
        logs.foreign += [
            _record(rng, *own, (host, at), (late[0] / 2, late[1])) for _ in range(2 if rng.random() < 0.3 else 1)
        ]
    if rng.random() < 0.3:
        logs.foreign.append({"reason": "broken-json", "raw": b"{", "due": START})
    for records in (logs.primary, logs.foreign):
        records.sort(key=lambda row: float(row["due"]))
    return logs


def conversions(rng: random.Random, clicks: Logs, late: tuple[float, float]) -> Logs:
    """A third stream: records that name clicks, as clicks name queries."""
    logs = Logs(pace={name: rng.choice([0.01, 0.03, 0.1]) for name in ("primary", "foreign")})
    named = {row["event_id"]: None for row in clicks.foreign if "event_id" in row}
    for n, click in enumerate(named):
        host, _, time = click.split(":")
        at = int(time) / 1e6 - START
        if rng.random() < 0.7:
            logs.foreign.append(_record(rng, f"v{n}", at + rng.uniform(0, 20), (host, at), late))
    logs.foreign.sort(key=lambda row: float(row["due"]))
    return logs


def _record(
    rng: random.Random, host: str, at: float, of: tuple[str, float] | None, late: tuple[float, float]
) -> dict[str, Any]:
    made: dict[str, Any] = {"event_id": event_id(host, at), "event_time": moment(at)}
    if of:
        made |= {"primary_id": event_id(*of), "primary_time": moment(of[1])}
    text = {name: value for name, value in made.items() if name.endswith("_id")}
    # A writer's clock may be ahead; some records are written late.
    delay = rng.choice([-SKEW, 0, 5, 30]) + (rng.uniform(0, late[1]) if rng.random() < late[0] else 0)
    return made | {"payload": json.dumps(text), "due": START + max(at + delay, 0)}


def _time(row: dict[str, Any], spec: RecordSpec) -> datetime | None:
    return local_times.read(row["text"], spec.event_form) if "text" in row else row.get("event_time")


class LogSource(Source):
    """The Source port over one stream."""

    def __init__(self, world: World, logs: Logs, stream: str, *, ahead: bool = False) -> None:
        """`ahead`: all but single records are read by tasks, and so ahead of their batch."""
        self._world, self._ahead = world, ahead
        self._logs = logs
        self._stream = stream

    def plan(self, offsets: Mapping[str, SourceOffset], budget: Budget) -> SourcePlan:
        """What was written and not planned yet, as far as the budget goes."""
        self._world.pause("list", f"log of {self._stream}")
        name, written = f"{self._stream}-log", self._logs.written[self._stream]
        at = FilePosition.of(offsets[name]).offset // _LENGTH if name in offsets else 0
        if not self._logs.can_be_read(self._stream, self._world.now) and self._world.live:
            return SourcePlan(problems=(Problem("unreadable", name, "not now"),))
        if self._logs.is_missing_at_first and not written:
            return SourcePlan(problems=(Problem("missing", name, "no file yet"),))
        end = min(written, at + budget.max_events)
        if end <= at:
            return SourcePlan()
        split = FileSplit(name, name, at * _LENGTH, end * _LENGTH, 0, "", 0, "", end - at)
        done = FilePosition(name, name, 1, 1, end * _LENGTH, written * _LENGTH, 0, 0, "", 0, "")
        left = written - end
        return SourcePlan((split.to_split(),), (done.to_offset(),), left * _LENGTH, left)

    def read(self, spark: Any, splits: Sequence[Split], spec: RecordSpec) -> Any:
        """The records of the splits."""
        rows = self._rows(splits, spec)
        return frames.DataFrame(spark, _COLUMNS, lambda: rows)

    def read_through(self, spark: Any, splits: Sequence[Split], spec: RecordSpec, each: Any, ddl: str) -> Any:
        """What the workers make of them."""
        batches = pa.Table.from_pylist(self._rows(splits, spec), schema=SCHEMA).to_batches()
        made = [row for batch in each(iter(batches)) for row in batch.to_pylist()]
        return frames.DataFrame(spark, names_of_ddl(ddl), lambda: made)

    def read_here(self, splits: Sequence[Split], spec: RecordSpec) -> pa.Table | None:
        """The same, half of the time: a copy of a batch may take the other way."""
        if int(self._world.now * 10) % 2:
            return None
        return pa.Table.from_pylist(self._rows(splits, spec), schema=SCHEMA)

    def _rows(self, splits: Sequence[Split], spec: RecordSpec) -> list[dict[str, Any]]:
        rows = []
        blank = dict.fromkeys(_COLUMNS)
        for piece in map(FileSplit.of, splits):
            for at in range(piece.start // _LENGTH, piece.end // _LENGTH):
                record = {name: value for name, value in self._logs.stream(self._stream)[at].items() if name != "due"}
                if record.pop("text", ""):
                    record["event_time"] = _time(self._logs.stream(self._stream)[at], spec)
                moment = record.get("event_time")
                if moment is not None and micros(moment) > spec.latest_micros:
                    assert self._logs.clocks_are_wrong, "an event from the future"
                    record = {"reason": "impossible-time", "raw": record["payload"].encode()}
                place = {
                    "path": piece.path,
                    "source_partition": piece.generation,
                    "offset": at * _LENGTH,
                    "length": _LENGTH,
                }
                rows.append(blank | record | place)
        return rows

    def last_written(self, offsets: Mapping[str, SourceOffset]) -> float:
        """When the newest record was written that is planned; 0 where none is."""
        read = self._logs.read(offsets)
        return self._logs.times[self._stream][read - 1] if read else 0

    def size(self, split: Split) -> int:
        """Bytes of a file's end that are unknown: none here."""
        part = FileSplit.of(split)
        return part.end - part.start if self._ahead else 0

    def completeness(self, evidence: Evidence) -> Completeness:
        """As that of files: these logs are like them."""
        return check(self, evidence)

    def rewritten(self, offsets: Sequence[SourceOffset]) -> list[SourceOffset]:
        """None: these logs only grow."""
        return []

    def reread(self, split: Split, start: int, end: int, spec: RecordSpec) -> list[int | None]:
        """Event times of the records between two bytes."""
        records = self._logs.stream(self._stream)[start // _LENGTH : end // _LENGTH]
        return [micros(time) if (time := _time(row, spec)) else None for row in records]
