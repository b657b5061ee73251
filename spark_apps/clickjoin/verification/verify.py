"""Verification: a first look at all ids of a range, a second at what seemed wrong, and recovery if it is asked for.

Joins go on meanwhile. An event that moves between two tables while these are read can seem to be in none, or
in both; so a fault counts only if a second look, at newer versions, finds the same.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from clickjoin.forgotten.known import forgotten
from clickjoin.forgotten.sweep import left, sweep
from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import EVENT_KEY, MICROS, moment
from clickjoin.model.reporter import Reporter
from clickjoin.model.span import Span
from clickjoin.model.txn import Txn
from clickjoin.schemas import QUARANTINE
from clickjoin.verification import id_places, picks, records
from clickjoin.verification.damage import Damage, Logs, examine, settle, whole_logs
from clickjoin.verification.findings import (
    FAULTS,
    NOT_FORGOTTEN,
    NOTICES,
    REPAIRABLE,
    SAMPLES,
    TWO_TIMES,
    Count,
    Older,
    Report,
    left_over,
    sample,
)
from clickjoin.verification.recover import Recovery, prescribe, settle_stranded
from clickjoin.verification.snapshot import Journals, Reading, read, settled_now, sized, whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.engine import Engine
    from clickjoin.model.split import PlannedSplit, SplitKey

PATIENCE = 10.0
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Wanted:
    """What a verification does, and what to repair.

    The range of event time, by default: verify.window until now, or all that is kept where that is due, or where
    something is wrong with an older event.
    """

    since: datetime | None = None
    until: datetime | None = None
    repair: bool = False
    remove_doubles: bool = False

    def __post_init__(self) -> None:
        """Errors: ConfigError where rows are to be moved and nothing fixed."""
        if self.remove_doubles and not self.repair:
            raise ConfigError("doubled rows are only moved by a repair", remedy="Add --repair, or leave the other out")

    @property
    def is_open(self) -> bool:
        """Whether no range was given."""
        return self.since is None and self.until is None

    def span(self, pipeline: Pipeline, now: datetime) -> Span:
        """The range. Events may be ahead of the clock by limits.max_skew."""
        if self.since and self.until and self.until <= self.since:
            raise ConfigError(f"from {self.since} is not before to {self.until}", remedy="Exchange them")
        until = self.until or now + timedelta(seconds=pipeline.limits.max_skew)
        return Span(self.since or min(now, until) - timedelta(seconds=pipeline.verify.window), until)


def _unknown() -> datetime | None:
    return None


class Verifier:
    """Verifies and repairs a pipeline, for an engine's replica.

    `patience`: seconds for batches in flight. `oldest_wrong`: counts, and gives the time of the oldest event that is
    in no table, or in too many, as far as that is known.
    """

    def __init__(
        self,
        engine: Engine,
        report_line: Reporter,
        *,
        patience: float = PATIENCE,
        oldest_wrong: Callable[[], datetime | None] = _unknown,
    ) -> None:
        self._settle_stranded = partial(settle_stranded, engine, report_line)
        self._lake, self._pipeline, self._replica, self._report_line = (
            engine.lake,
            engine.pipeline,
            engine.replica,
            report_line,
        )
        self._sources, self._clock, self._patience = engine.sources, engine.clock, patience
        self._oldest_wrong = oldest_wrong
        self._findings = f"{engine.pipeline.pipeline}/{engine.replica}/findings"
        self._recovery = Recovery(engine.lake, engine.pipeline, engine.replica, report_line, engine.clock)

    def verify(self, wanted: Wanted) -> Report:
        """Look, repair what was asked for, and write it all to table `verification`."""
        begun, delta = time.perf_counter(), self._lake.delta
        logs = whole_logs(delta, self._pipeline, repair=wanted.repair, report_line=self._report_line)
        # A run's number only grows, as that of its findings must: whatever the clock says.
        last = delta.latest_txn_version("findings", self._findings)
        micros = max(int(self._clock() * MICROS), last + 1)
        now = moment(micros)
        span, older, damage = self._range(wanted, now, logs)
        self._recovery.resume()
        with sized(self._lake, self._pipeline, span), self._lake.without(damage.files):
            report = self._repaired(span, micros, damage, wanted)
        report = replace(report, seconds=time.perf_counter() - begun, older=older)
        self._lake.delta.append("verification", report.rows())
        for name in ("verification", "findings"):
            self._lake.delta.drop_before(name, "at", report.at - timedelta(seconds=self._pipeline.retention.metrics))
        self._report_line(f"{report.verdict} ({report.seconds:.1f} s)")
        return report

    def _range(self, wanted: Wanted, now: datetime, logs: Logs) -> tuple[Span, Older | None, Damage]:
        """What to look at, what of older events then remains, and the damage: that may be of any time."""
        delta, span = self._lake.delta, wanted.span(self._pipeline, now)
        older = self._older(span, now) if wanted.is_open else None
        if wanted.is_open and not older:
            span = whole(delta, span)
        damage = examine(delta, logs, span.low)
        wrong = self._oldest_wrong() if older and not damage else None
        if wrong and wrong < span.low:
            older, span = None, whole(delta, span)
            damage = examine(delta, logs, span.low)
        return (whole(delta, span), None, damage) if damage else (span, older, damage)

    def _older(self, span: Span, now: datetime) -> Older | None:
        """Events before a range; None unless a run of verify.full_every covered all, and the newest left no fault."""
        wide = whole(self._lake.delta, span)
        key = [("at", ">", now - timedelta(seconds=self._pipeline.verify.full_every)), ("at", "<=", now)]
        columns = ["at", "from_time", "to_time", "fault", "count", "repaired"]
        rows = self._lake.delta.read("verification", key, columns).to_pylist()
        full = [row for row in rows if row["from_time"] <= wide.low and row["to_time"] >= row["at"]]
        newest = max((row["at"] for row in full), default=None)
        is_done = not any(row["at"] == newest and left_over(row) for row in full)
        return Older(newest, wide.low) if newest and is_done and wide.low < span.low else None

    def _repaired(self, span: Span, micros: int, damage: Damage, wanted: Wanted) -> Report:
        """Look, and repair what was asked for: records first, for ids hang on them; then ids, then the tables."""
        if wanted.repair and damage:
            self._settle_stranded()
        looked, relanded = self._look(span, micros, damage), 0
        while wanted.repair and looked.unread:
            judged = QUARANTINE.name not in damage.tables()
            done = self._recovery.reland(list(looked.unread.values()), self._sources, micros, judged=judged)
            relanded += done
            looked = self._look(span, micros, damage).after(looked, relanded)
            if not done:
                break
        counts = (*looked.counts, *damage.counts(), *self._not_forgotten(span))
        report = Report(f"{self._replica}/{micros}", moment(micros), span, counts, notes=looked.notes)
        for count in report.counts:
            if count.fault and count.count:
                self._report_line(
                    f"{count.kind}: {count.count}, such as {dict(count.samples[0]) if count.samples else ''}"
                )
        if not wanted.repair:
            return report
        again = self._forget_again(span, report)
        confirmed = looked.confirmed
        repaired = self._repair(report, confirmed, wanted, micros) if confirmed else {}
        all_done = looked.faults <= self._pipeline.batch.max_events and not looked.unread
        if damage and all_done:
            settle(self._lake.delta, self._pipeline, damage, self._report_line)
        found = report.repaired(repaired | damage.repaired(all_done) | {"unread": relanded} | again)
        return replace(found, cut=not all_done)

    def _not_forgotten(self, span: Span) -> tuple[Count, ...]:
        """Rows that hold a record of an event that was forgotten: a batch was under way, or a table put back."""
        events = forgotten(self._lake.delta).within(span.low, span.high)
        found = left(self._lake, events, int(self._pipeline.registry.bucket)) if events else {}
        tables = tuple({"table": name, "rows": count} for name, count in found.items())
        return (Count(NOT_FORGOTTEN, sum(found.values()), len(events.of("foreign")), samples=tables),)

    def _forget_again(self, span: Span, report: Report) -> dict[str, int]:
        if not any(count.count for count in report.counts if count.kind == NOT_FORGOTTEN):
            return {}
        events = forgotten(self._lake.delta).within(span.low, span.high)
        done = sweep(self._lake, events, int(self._pipeline.registry.bucket))
        return {NOT_FORGOTTEN: sum(done.values())}

    def _look(self, span: Span, micros: int, damage: Damage) -> _Looked:
        first = read(self._lake, self._pipeline, span, moment(micros))
        seen = id_places.count(first)
        confirmed = self._confirm(first, seen, moment(micros))
        input_ = records.check(self._lake, self._pipeline, self._sources, first, micros, damage.tables())
        counts = (*self._ids(first, seen, confirmed), *picks.counts(self._lake, self._pipeline, first), *input_.counts)
        return _Looked(counts, confirmed, input_.notes, input_.unread)

    def _ids(self, first: Reading, seen: dict[str, Any], confirmed: Confirmed | None) -> tuple[Count, ...]:
        found = confirmed.counts if confirmed else {}
        samples = confirmed.samples if confirmed else {}
        counts = [Count(kind, found.get(kind, 0), seen["ids"], samples=samples.get(kind, ())) for kind in FAULTS]
        counts += [Count(kind, seen[kind], seen["ids"], fault=False) for kind in NOTICES]
        if not first.by_id and self._pipeline.claimed.event_time not in ("embedded", "uuid7"):
            twice = id_places.two_times(first).orderBy("event_id").limit(SAMPLES + 1).collect()
            number = len(twice) if len(twice) <= SAMPLES else id_places.two_times(first).count()
            counts.append(Count(TWO_TIMES, number, seen["accepted"], fault=False, samples=sample(twice)))
        return tuple(counts)

    def _confirm(self, first: Reading, seen: dict[str, Any], now: datetime) -> Confirmed | None:
        """What a second reading finds as well; None where the first found nothing."""
        suspected = [kind for kind in FAULTS if seen[kind]]
        if not suspected:
            return None
        self._report_line(
            "checking again, at newer versions: " + ", ".join(f"{seen[kind]} {kind}" for kind in suspected)
        )
        # Where an id alone names an event, its other rows may be of any time.
        span = first.span if first.by_id else Span(moment(seen["low"]), moment(seen["high"] + 1))
        again = first if first.by_id else first.narrowed(span)
        before = id_places.faulty(again, suspected).select("kind", *EVENT_KEY)
        self._await(first.journals)
        second = read(self._lake, self._pipeline, span, now)
        rows = (
            id_places.faulty(second, suspected)
            .join(before, ["kind", *EVENT_KEY], "left_semi")
            .localCheckpoint(eager=False)
        )
        counts = {row["kind"]: row["count"] for row in rows.groupBy("kind").count().collect()}
        return Confirmed(second, rows, counts, _samples(rows)) if counts else None

    def _await(self, journals: Journals) -> None:
        """Give batches that were in flight some time to settle."""
        for _ in range(int(self._patience / _LOOK_SECONDS)):
            settled = settled_now(self._lake.delta, self._pipeline.pipeline)
            if all(settled.get(key, 0) >= number for key, number in journals.planned.items()):
                return
            self._lake.sleep(_LOOK_SECONDS)

    def _repair(self, report: Report, confirmed: Confirmed, wanted: Wanted, micros: int) -> dict[str, int]:
        rows = prescribe(self._pipeline, confirmed.reading, confirmed.rows, wanted.remove_doubles)
        rows = rows.withColumns({"run": F.lit(report.run), "at": F.lit(report.at)})
        self._lake.append("findings", rows, Txn(self._findings, micros))
        doable = set(REPAIRABLE) - (set() if wanted.remove_doubles else {"doubled"})
        return self._recovery.run(micros) if doable & confirmed.counts.keys() else {}


class _Looked(NamedTuple):
    """What a look found: counts, faults of ids that are sure, notes, and splits with records that are in no table."""

    counts: tuple[Count, ...]
    confirmed: Confirmed | None
    notes: tuple[str, ...]
    unread: Mapping[SplitKey, PlannedSplit]

    @property
    def faults(self) -> int:
        """How many faults of ids are sure."""
        return sum(self.confirmed.counts.values()) if self.confirmed else 0

    def after(self, before: _Looked, relanded: int) -> _Looked:
        """The same, with the records that an earlier look had found unread, and that were landed since."""
        first = next(count for count in before.counts if count.kind == "unread")
        counts = [
            replace(first, count=count.count + relanded) if count.kind == "unread" else count for count in self.counts
        ]
        return self._replace(counts=tuple(counts))


@dataclass(frozen=True)
class Confirmed:
    """Faults that two readings agree on (kind, event_id, event_time, shard), and the later reading."""

    reading: Reading
    rows: DataFrame
    counts: dict[str, int]
    samples: dict[str, tuple[dict[str, Any], ...]]


def _samples(rows: DataFrame) -> dict[str, tuple[dict[str, Any], ...]]:
    order = Window.partitionBy("kind").orderBy("event_time", "event_id")
    few = rows.withColumn("_nth", F.row_number().over(order)).where(f"_nth <= {SAMPLES}").orderBy("kind", "_nth")
    by_kind: defaultdict[str, list[Any]] = defaultdict(list)
    for row in few.select("kind", "event_id", F.unix_micros("event_time").alias("micros")).collect():
        by_kind[row["kind"]].append({"event_id": row["event_id"], "event_time": moment(row["micros"])})
    return {kind: sample(found) for kind, found in by_kind.items()}
