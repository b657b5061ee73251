"""Batches of per-key processing: plan, set late events aside, commit state and outbox at once, publish, settle.

As a claim goes before its row, the commit of table `state` goes before that of `signals`: it alone says what the batch
did, and anyone who comes after it, a late copy or a new process, publishes that outbox and no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from clickjoin.dispatcher.pacing import wait
from clickjoin.lake.clock import LakeClock
from clickjoin.lake.maintenance import sizes
from clickjoin.model import failpoint
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.places import JOINED, folder_of
from clickjoin.processing.agreement import require_agreement
from clickjoin.processing.compute import Result, Sorted, Times, began_of, process, sort_out
from clickjoin.processing.events import EventReader, Events
from clickjoin.processing.loading import load_processor, made_by, require_process
from clickjoin.processing.planning import BEFORE, STREAM, Planner
from clickjoin.processing.state_rows import Committed, Loaded, batch_rows, key_rows, load
from clickjoin.processing.tables import open_tables
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.schemas.process import LATE

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.model.batch_plan import BatchPlan

_LOOKS = 20
_MOST_BATCHES = 1_000  # of an era: each is two files
_FEWEST = 1_000  # keys: of fewer not so often all are written again
Row = dict[str, Any]


class Processing:
    """The processing of one pipeline's output. Not for use from several threads."""

    def __init__(self, pipeline: Pipeline, clock: Callable[[], float] | None = None) -> None:
        """Errors: ConfigError, LakeError."""
        self._process = require_process(pipeline)
        self._processor = load_processor(self._process)
        self._pipeline = pipeline
        self._lateness = int(self._process.corrects * MICROS)
        self.tables = open_tables(pipeline, self._processor.state, made_by(self._process, self._processor))
        self._reader = EventReader(folder_of(pipeline.root, JOINED), self._process.paths)
        self._clock = clock or LakeClock(pipeline.root)
        self.planner = Planner(pipeline, self._process, self.tables, self._clock)
        self._loaded: Loaded | None = None
        self._dispatcher = self.planner.dispatcher
        require_agreement(self.tables, self._dispatcher.journal)

    def once(self) -> Row | None:
        """Run the next batch; None where there is none."""
        settled = 0
        for _ in range(_LOOKS):
            if plan := self._dispatcher.unsettled():
                return self._carry_through(plan)
            settled = self._dispatcher.known().last
            loaded = self._at(settled)
            if loaded.last.number == settled:
                plan = self.planner.next(loaded.held.next_timer())
                return self._carry_through(plan) if plan else None
            # Another process goes on meanwhile: look again.
        raise self._out_of_step(settled)

    def run(self, seconds: float | None, done: Callable[[Row], None], stop: Callable[[], bool] = lambda: False) -> None:
        """Work through batches for some seconds (indefinitely if None), then return between two batches."""
        end = None if seconds is None else time.monotonic() + seconds
        while not stop() and (end is None or time.monotonic() < end):
            begun = time.monotonic()
            row = self.once()
            if row:
                done(row)
            if not (row and row["backlog_events"]):  # on S3 a look costs requests
                wait(begun + self._pipeline.batch.trigger_interval, stop, end)

    def drain(self, done: Callable[[Row], None]) -> None:
        """Work through all rows that the output holds now."""
        while row := self.once():
            done(row)

    def _now(self) -> Loaded:
        if self._loaded is None:
            self._loaded = load(self.tables)
        return self._loaded

    def _at(self, number: int) -> Loaded:
        """The state after a batch, or after a later one of another process. Errors: LakeError for an older one."""
        if self._now().last.number != number:
            self._loaded = load(self.tables)
        if self._now().last.number < number:
            raise self._out_of_step(number)
        return self._now()

    def _carry_through(self, plan: BatchPlan) -> Row | None:
        begun = time.perf_counter()
        failpoint.reach("process-planned")
        if self.tables.latest_txn_version("state", plan.txn.app_id) < plan.number:
            self._work(plan)
        last = self._at(plan.number).last
        if last.number > plan.number:  # another copy has settled it while this one was paused
            return self.once()
        failpoint.reach("process-state")
        if last.outbox is not None:
            self.tables.append_table("signals", last.outbox, plan.txn)
        failpoint.reach("process-published")
        row = self._row(plan, last, time.perf_counter() - begun)
        self.tables.append("processed", [row], plan.txn)
        self.planner.settled(plan, last.newest)
        if self._now().era == plan.number:  # a whole copy of all keys: those before are needed no more
            self._drop_eras(plan.number)
        failpoint.reach("process-settled")
        return row

    def _out_of_step(self, number: int) -> LakeError:
        return LakeError(
            f"{self.tables.path('state')}: ends with batch {self._now().last.number}, and the journal is at batch "
            f"{number}: one of them is older than the other",
            remedy="Put the newest copies of both back, or run `clickjoin process --rebuild`",
        )

    def _work(self, plan: BatchPlan) -> None:
        """Work the batch out and commit it; what another copy has committed meanwhile is taken instead."""
        loaded = self._at(plan.number - 1)
        if loaded.last.number >= plan.number:
            return
        events = self._reader.read(plan.splits.get(STREAM, ()))
        times = Times(plan.watermarks[BEFORE], plan.watermarks[STREAM], self._lateness)
        sorted_ = sort_out(events, times)
        self._set_aside(plan, events, sorted_)
        taken = sorted_.taken
        began = began_of(loaded.last.began, events.times[taken])
        reported = (plan.planned_at, plan.number)
        result = process(self._processor, loaded.held, events, taken, times, began, reported)
        outbox = result.signals if result.signals.num_rows else None
        newest = int(events.times.max()) if len(events) else 0
        batch = Committed(
            plan.number,
            outbox,
            began,
            len(taken) - sorted_.corrects,
            len(sorted_.aside),
            events.known,
            len(result.keys),
            newest,
        )
        self._commit(plan, loaded, batch.after(loaded.last), result)

    def _set_aside(self, plan: BatchPlan, events: Events, sorted_: Sorted) -> None:
        if not sorted_.aside:
            return
        mark = moment(plan.watermarks[BEFORE])
        rows = [
            {
                "event_id": events.ids[at].as_py(), "event_time": moment(int(events.times[at])),
                "key": events.keys[at].as_py(), "reason": reason, "watermark": mark,
                "batch": plan.number,
            }
            for at, reason in sorted_.aside.items()
        ]  # fmt: skip
        self.tables.append_table("late", pa.Table.from_pylist(rows, schema=arrow_schema(LATE)), plan.txn)
        failpoint.reach("process-late")

    def _commit(self, plan: BatchPlan, loaded: Loaded, last: Committed, result: Result) -> None:
        held, done = loaded.held, result.done
        self._loaded = None  # whatever comes of the commit, `held` is a step ahead of what is known
        held.put(result.keys, result.places, done.state, done.timers, done.gone)
        many = plan.number - loaded.era >= _MOST_BATCHES
        whole = many or not loaded.era or loaded.rows > 2 * max(len(held), _FEWEST)
        era = plan.number if whole else loaded.era
        keys, state, timers = held.all() if whole else (result.keys, done.state, done.timers)
        gone = np.zeros(len(keys), bool) if whole else done.gone
        rows = key_rows(self.tables, era, plan.number, keys, state, timers, gone)
        table = pa.concat_tables([rows, batch_rows(self.tables, era, last)])
        if self.tables.append_table("state", table, plan.txn):
            count = rows.num_rows if whole else loaded.rows + rows.num_rows
            self._loaded = Loaded(held, last, era, count)

    def _drop_eras(self, before: int) -> None:
        """Drop the states of eras that are over: a metadata-only commit."""
        if any(int(era) < before for era in sizes(self.tables, "state", "era")):
            self.tables.delete("state", f"era < {before}")

    def _row(self, plan: BatchPlan, last: Committed, seconds: float) -> Row:
        mark, now = plan.watermarks[STREAM], datetime.fromtimestamp(self._clock(), UTC)
        return {
            "batch": plan.number, "planned_at": plan.planned_at, "settled_at": now,
            "events": last.events, "late": last.late, "known": last.known, "keys": last.looked,
            "keys_in_state": len(self._now().held), "signals": last.outbox.num_rows if last.outbox else 0,
            "watermark": moment(mark) if mark > 0 else None, "seconds": round(seconds, 4),
            "backlog_events": plan.backlog_events,
        }  # fmt: skip
