"""A topic of Kafka as a source: planned from brokers' answers, read by this process or by Spark's workers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.chunk import KafkaChunk, Link, spread_offsets
from clickjoin.kernel.kafka import reading
from clickjoin.kernel.kafka.connection import ANSWER, Connection, Ends, KafkaAway, NoTopic, Topic, require_package
from clickjoin.kernel.parse.csv_lines import CsvForm
from clickjoin.kernel.read_lines import SCHEMA
from clickjoin.kernel.types import RecordFn
from clickjoin.model.split import Budget, LastRecord, Problem, SourceOffset, SourcePlan, Split
from clickjoin.sources.completeness import Completeness, Evidence
from clickjoin.sources.kafka.marks import marked, refuted
from clickjoin.sources.kafka.planning import Look, located, make_plan
from clickjoin.sources.kafka.state import Place, Position, Range
from clickjoin.sources.ranges import RangeSource, is_in
from clickjoin.sources.sample import SAMPLE_BYTES, SAMPLE_RECORDS, Sample, sample_of

if TYPE_CHECKING:
    from clickjoin.config import Kafka
    from clickjoin.model.ids import RecordSpec


class Group:
    """Tells the group of a connection how far partitions have been read."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._committed: dict[Place, int] = {}

    def tell(self, look: Look, positions: Mapping[str, Position]) -> Problem | None:
        """Commit what has changed, without waiting; what became of the commit before, where it was refused.

        `positions`: of settled batches.
        """
        own = (look.topic.cluster, look.topic.id)
        now = {
            position.place: position.next
            for position in positions.values()
            if (position.place.cluster, position.place.topic_id) == own
        }
        changed: dict[Place, Any] = dict(now.items() - self._committed.items())
        if changed:
            self._connection.commit([(look.name, place.number, offset) for place, offset in changed.items()])
            self._committed |= changed
        why = self._connection.uncommitted()
        detail = f"offsets are not committed to group {self._connection.group}, and tools show no lag: {why}"
        return Problem("not-committed", f"kafka:{look.name}", detail) if why else None


_LOOK = 5.0  # seconds that someone waits who only looks
_CUT_SECONDS = 60.0  # a log that has been too short for so long has lost what it lacks
_COMPARE_SECONDS = 60.0  # how often one that shows nothing new is compared with what was read
_MEAN, _ENOUGH = 500.0, 100  # bytes of a message, until so many were read
_END = 1 << 62  # an offset behind every end


class KafkaSource(RangeSource):
    """The messages of one topic. `now`: seconds since 1970; `tasks`: how many read a large batch.

    Without `keep` its plans are only looked at: nothing is committed to the group, and a cluster that does not answer
    is a problem of the plan, not an error. `group`: what the group is called where the configuration does not say.
    """

    needs = ("confluent-kafka",)

    def __init__(
        self, source: Kafka, *, now: Callable[[], float] = time.time, tasks: int = 8, keep: bool = True, group: str = ""
    ) -> None:
        self._config, self._now, self._tasks, self._keep = source, now, tasks, keep
        self._link = link_of(source, group)
        self._connection = Connection(self._link, ANSWER if keep else _LOOK)
        self._group = Group(self._connection) if keep and group else None
        self._lock = threading.RLock()
        self._form = CsvForm(source.separator, source.columns or ()) if source.format == "csv" else None
        self._mean: float | None = None
        self._short: dict[int, float] = {}  # partitions whose logs are too short, and since when (monotonic)
        self._compared_at: dict[str, float] = {}  # when a partition was last compared (monotonic)

    def plan(self, offsets: Mapping[str, SourceOffset], budget: Budget) -> SourcePlan:
        """Say what a batch reads next: nothing beyond what is committed. See Source.

        Errors: SourceError where no broker answers.
        """
        positions = {name: Position.of(offset) for name, offset in offsets.items()}
        with self._lock:
            try:
                look = self._look(positions)
                back, said = self._compared(look, positions)
            except NoTopic as error:
                return SourcePlan(problems=(Problem("missing", self._config.path, str(error)),))
            except KafkaAway as error:
                if self._keep:
                    raise
                return SourcePlan(problems=(Problem("unreadable", self._config.path, str(error)),))
            refused = self._group.tell(look, positions) if self._group else None
        plan = make_plan(look, positions, budget, back)
        if self._keep and plan.splits:
            with self._lock:
                moved = marked(self._connection, look.name, [Position.of(offset) for offset in plan.offsets])
            plan = replace(plan, offsets=tuple(position.to_offset() for position in moved))
        return replace(plan, problems=(*plan.problems, *said, *([refused] if refused else [])))

    def _compared(self, look: Look, positions: Mapping[str, Position]) -> tuple[Sequence[Position], Sequence[Problem]]:
        """Positions of partitions that hold other messages than were read. See `marks`.

        One that ends where it was read to may have come back older and taken in as many: it is compared now and then.
        """
        places = {str(Place(look.topic.cluster, look.topic.id, number)): ends for number, ends in look.ends.items()}
        asked = {
            name: position
            for name, ends in places.items()
            if (position := positions.get(name)) and position.marks and self._to_compare(name, position, ends)
        }
        if not self._keep or not asked:
            return (), ()
        back, said = refuted(self._connection, look.name, asked.values())
        self._compared_at |= dict.fromkeys(asked, time.monotonic())
        lows = {position.place.number: look.ends[position.place.number].low for position in back}
        return [replace(one, next=max(one.next, lows[one.place.number])) for one in back], said

    def _to_compare(self, name: str, position: Position, ends: Ends) -> bool:
        last = self._compared_at.get(name, -inf)
        return position.next < ends.high or (position.next == ends.high and time.monotonic() - last > _COMPARE_SECONDS)

    def _look(self, positions: Mapping[str, Position]) -> Look:
        name = self._config.topic
        topic = self._connection.topic(name)
        ends = self._connection.ends(name, topic.partitions)
        begin = {} if positions else self._begin(topic.partitions)
        mine = {number: positions.get(str(Place(topic.cluster, topic.id, number))) for number in ends}
        short = {number for number, known in mine.items() if known and known.next > ends[number].high}
        now = time.monotonic()
        self._short = {number: self._short.get(number, now) for number in short}
        cut = [number for number, since in self._short.items() if now - since > _CUT_SECONDS]
        look = Look(name, topic, ends, begin, self._now(), self._mean or _MEAN, cut)
        if self._mean is None and (self._keep or not positions):
            self._mean = self._measure(look, mine)
        return replace(look, mean=self._mean or _MEAN)

    def _begin(self, partitions: Sequence[int]) -> dict[int, int]:
        """Where the first look of all begins; a partition that comes later is read from its beginning."""
        begin = self._config.begin
        if begin == "earliest":
            return {}
        if isinstance(begin, datetime):
            found = self._connection.at_time(self._config.topic, partitions, round(begin.timestamp() * 1000))
            return {number: offset if offset >= 0 else _END for number, offset in found.items()}
        return dict.fromkeys(partitions, _END)

    def _measure(self, look: Look, mine: Mapping[int, Position | None]) -> float | None:
        """Bytes of a message, by a few of one partition that has some unread."""
        for number, ends in look.ends.items():
            known = mine[number]
            start = max(known.next if known else look.begin.get(number, 0), ends.low)
            if start < ends.high:
                return reading.mean_size(self._connection, look.name, number, start)
        return None

    def lost(self, splits: Sequence[Split]) -> dict[str, str]:
        """Planned splits of which some offsets are gone: partition to reason."""
        return {chunk.source_partition: chunk.lost for chunk in self.chunks(splits) if chunk.lost}

    def chunks(self, splits: Sequence[Split]) -> list[KafkaChunk]:
        """What there is to read of splits now, and what of them is gone. Errors: SourceError."""
        ranges = [Range.of(split) for split in splits]
        with self._lock:
            now: dict[str, tuple[Topic, Mapping[int, Ends]]] = {}
            for name in {one.topic for one in ranges}:
                topic = self._connection.topic(name)
                wanted = {one.place.number for one in ranges if one.topic == name} & set(topic.partitions)
                now[name] = topic, self._connection.ends(name, wanted)
        metadata = self._config.metadata
        there = (chunk for one in ranges for chunk in located(one, *now[one.topic], self._form))
        return [chunk._replace(metadata=metadata) for chunk in there]

    def read_chunks(self, chunks: Sequence[KafkaChunk], spec: RecordSpec) -> pa.Table:
        """Their records, read by this process; columns as RECORDS_DDL."""
        with self._lock:
            batches = list(reading.read_chunks(chunks, spec, self._connection))
        found = pa.Table.from_batches(batches, schema=SCHEMA)
        if found.num_rows >= _ENOUGH:
            self._mean = (pc.sum(found["length"]).as_py() or 0) / found.num_rows
        return found

    def dealt(self, splits: Sequence[Split]) -> list[list[KafkaChunk]]:
        """Of a partition a task reads one range at most. See RangeSource."""
        chunks = self.chunks(splits)
        sizes = [round((chunk.end - chunk.start) * (self._mean or _MEAN)) for chunk in chunks]
        return spread_offsets(chunks, sizes, self._tasks)

    def work_of(self, work: Sequence[Sequence[KafkaChunk]], spec: RecordSpec, each: RecordFn) -> RecordFn:
        """What a task does, over a connection of its own."""
        return reading.reader(work, spec, self._link, each)

    def resume(self, last: LastRecord, spec: RecordSpec) -> SourceOffset | None:
        """The offset just after a record; None where another message lies there: brokers came back with older data.

        Whether its topic is there still, the next plan finds. Errors: SourceError where no broker answers.
        """
        place, topic = Place.of(last.partition), last.path.removeprefix("kafka:").rpartition("/")[0]
        try:
            chunks = self.chunks([Range(place, topic, last.offset, last.offset + 1).to_split(1, 1)])
        except NoTopic:
            chunks = []
        found = self.read_chunks([chunk for chunk in chunks if not chunk.lost], spec.of_any())
        if found.num_rows and not is_in(last, found):
            return None
        return Position(place, topic, last.offset + 1, last.offset + 1, self._now()).to_offset()

    def completeness(self, evidence: Evidence) -> Completeness:
        """Whether every message of planned offsets is in a row, once. See Source."""
        from clickjoin.sources.kafka.completeness import check  # Spark's functions, which few commands need

        return check(self, evidence)

    def last_written(self, offsets: Mapping[str, SourceOffset]) -> float:
        """When the end of a partition was last found to have moved, in seconds since 1970."""
        return max((Position.of(offset).at for offset in offsets.values()), default=inf)

    def sample(self, splits: Sequence[Split], spec: RecordSpec, most: int = SAMPLE_RECORDS) -> Sample:
        """A look at the first records of each split. See Source."""
        rows = self._begin_of(splits, spec, max(most // max(len(splits), 1), 1)).slice(0, most).to_pylist()
        csv = self._config.format == "csv"
        return sample_of([row | {"raw": None} for row in rows] if csv else rows, self._config.columns or ())

    def first_times(self, splits: Sequence[Split], spec: RecordSpec) -> dict[str, int | None]:
        """Event time (microseconds) of the first good record near the beginning of each split, by path."""
        rows = self._begin_of(splits, spec, SAMPLE_RECORDS)
        micros = rows["event_time"].cast(pa.int64()).to_pylist()
        first: dict[str, tuple[int, int]] = {}
        for path, offset, at in zip(rows["path"].to_pylist(), rows["offset"].to_pylist(), micros, strict=True):
            if at is not None:
                first[path] = min(first.get(path, (offset, at)), (offset, at))
        return {split.path: first[split.path][1] if split.path in first else None for split in splits}

    def _begin_of(self, splits: Sequence[Split], spec: RecordSpec, most: int) -> pa.Table:
        """About so many records of each split, from the first that is still there on."""
        most = max(min(most, int(SAMPLE_BYTES / (self._mean or _MEAN))), 1)
        there = [chunk for chunk in self.chunks(splits) if not chunk.lost]
        return self.read_chunks([one._replace(end=min(one.end, one.start + most)) for one in there], spec)


def link_of(source: Kafka, reader: str = "") -> Link:
    """Servers, group, options, and names of the variables that hold secrets. `reader`: who reads."""
    require_package()
    group = f"{source.group}-{reader}" if reader else source.group
    return Link(source.servers, group, tuple(sorted(source.options.items())), source.secrets(os.environ))
