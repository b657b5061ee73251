"""Collecting what joins no longer need (Photon, section 2.3): first the boundary moves, then whole partitions go.

The order is what keeps it safe. The boundary is committed; batches that were planned before that, and so may have read
the older one, are waited for, fenced or carried through; only then are partitions below the boundary dropped. Where
there are none of them, no batch is waited for. Cut short anywhere and begun again, it does the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.agreement.noted import note
from clickjoin.dispatcher import unsettled
from clickjoin.dispatcher.journal import JournalReader, sequences
from clickjoin.engines.tables_port import UnderWay
from clickjoin.gc.gc_plan import Facts, Horizon, horizon
from clickjoin.gc.journal_retention import trim
from clickjoin.gc.pending_retention import forget
from clickjoin.lake import maintenance
from clickjoin.lake.maintenance import Size, sizes
from clickjoin.model import failpoint
from clickjoin.model.ids import bucket_at, moment
from clickjoin.model.reporter import Reporter
from clickjoin.registry.boundary import advance, lift_floor, load_boundary, load_bounds
from clickjoin.registry.shards import load_timeline
from clickjoin.retry import pending

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.port import Lake


@dataclass
class Collected:
    """What a collection did, or in a dry run would do. Sizes by table; rows of history; stragglers by token."""

    dry_run: bool
    boundary_before: datetime | None
    boundary: datetime | None
    notes: tuple[str, ...]
    dropped: dict[str, Size] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    stragglers: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain data; times as text."""
        whole = asdict(self)
        for name in ("boundary_before", "boundary"):
            whole[name] = whole[name].isoformat() if whole[name] else None
        return whole


def facts(pipeline: Pipeline, lake: Lake, now: datetime) -> Facts:
    """What GC decides from, as of now."""
    boundary = load_boundary(lake.delta)
    waiting, wanted = _oldest_waiting(pipeline, lake)
    open_ = unsettled.unsettled(lake.delta, pipeline)
    return Facts(
        now=now,
        newest=maintenance.newest(lake.delta, "registry"),
        boundary=min(boundary.values()) if boundary else None,
        waiting=waiting,
        wanted=wanted,
        unsettled=open_[0].planned_at if open_ else None,
        claims=sizes(lake.delta, "registry"),
    )


def _oldest_waiting(pipeline: Pipeline, lake: Lake) -> tuple[datetime | None, datetime | None]:
    history = lake.read("pending")  # first: it starts Spark, without which no column can be named
    rows = pending.states(history, F.max("primary_time").alias("primary_time"))
    row = (
        rows.where("state = 'waiting'")
        .agg(
            F.min(F.unix_micros("event_time")).alias("own"),
            F.min(F.unix_micros("primary_time")).alias("named"),
        )
        .collect()[0]
    )
    own, named = (moment(row[name]) if row[name] is not None else None for name in ("own", "named"))
    if own and pipeline.around:
        named = own - timedelta(microseconds=pipeline.around.back)
    return own, named


@dataclass(frozen=True)
class Collector:
    """Collects claims below the retention, old rows of both streams, and old history of one pipeline.

    `finish` carries an unsettled batch through; `patience`: seconds to wait for such batches first.
    """

    pipeline: Pipeline
    lake: Lake
    now: datetime
    finish: unsettled.Finish
    report_line: Reporter
    patience: float = 60.0
    dry_run: bool = False
    sleep: Callable[[float], None] = time.sleep

    def collect(self) -> Collected:
        """Do it, or say what would be done. Errors: those of `finish`."""
        known = facts(self.pipeline, self.lake, self.now)
        wanted = horizon(self.pipeline, known)
        done = Collected(self.dry_run, known.boundary, wanted.boundary, wanted.notes)
        for line in wanted.notes:
            self.report_line(line)
        floor = self._claims(wanted, done)
        for name, before in (("primary", floor), ("foreign", wanted.foreign)):
            self._drop(name, before, done)
        self._history(done)
        return done

    def _claims(self, wanted: Horizon, done: Collected) -> datetime | None:
        """Drop claims; returns where table `primary` may begin from now on."""
        delta = self.lake.delta
        if wanted.boundary is None:
            return None
        repeats = timedelta(seconds=self.pipeline.repeats)
        if self.dry_run:
            done.stragglers["open"] = tuple(plan.token for plan in unsettled.unsettled(delta, self.pipeline))
            self._drop("registry", wanted.boundary - repeats, done)
            return wanted.primary
        shards = load_timeline(delta).most
        advance(delta, shards, wanted.boundary, self.now)
        if wanted.primary:
            lift_floor(delta, wanted.primary, self.now)
        # Now, not later: of another collector's next boundary the stragglers have not been handled.
        boundary, floor = load_bounds(delta)
        claims_from = min(boundary.values()) - repeats
        failpoint.reach("boundary-moved")
        if not (self._below("registry", claims_from) or self._below("primary", floor)):
            done.dropped |= {"registry": Size(), "primary": Size()}
            return None  # nothing is to go, so no batch under way is waited for or fenced
        note(delta, "registry_boundary")  # or claims could be gone, and the boundary be put back to before
        handled = unsettled.handle(delta, self.pipeline, self.patience, self.finish, self.sleep)
        done.stragglers = {name: tokens for name, tokens in asdict(handled).items() if tokens}
        for name, tokens in done.stragglers.items():
            self.report_line(f"batches from before the boundary moved, {name}: {', '.join(tokens)}")
        failpoint.reach("stragglers-handled")
        self._drop("registry", claims_from, done)
        failpoint.reach("claims-dropped")
        return floor

    def _below(self, name: str, before: datetime | None) -> bool:
        bucket = bucket_at(before, self.pipeline.registry.bucket) if before else ""
        return any(key < bucket for key in sizes(self.lake.delta, name))

    def _drop(self, name: str, before: datetime | None, done: Collected) -> None:
        if before is None:
            return
        bucket = bucket_at(before, self.pipeline.registry.bucket)
        if self.dry_run:
            going = (size for key, size in sizes(self.lake.delta, name).items() if key < bucket)
            done.dropped[name] = sum(going, Size())
        else:
            # A batch reads its own landed rows again, however old they are, and counts what became of each.
            done.dropped[name] = self.lake.delta.drop_buckets(
                name, bucket, self._under_way if name == "foreign" else None
            )

    def _under_way(self) -> UnderWay:
        delta, name = self.lake.delta, self.pipeline.pipeline
        keys = [key for key in sequences(delta) if key[1] == "join"]
        planned = {replica: JournalReader(delta, name, replica, "join").planned() for replica, _ in keys}
        open_ = unsettled.unsettled(delta, self.pipeline)
        return UnderWay([plan.number for plan in open_ if plan.sequence == "join"], planned)

    def _history(self, done: Collected) -> None:
        retention = self.pipeline.retention
        before = self.now - timedelta(seconds=retention.pending)
        done.rows["pending"] = forget(self.lake, before, dry_run=self.dry_run)
        for name, when, seconds in (("journal", "at", retention.journal), ("metrics", "settled_at", retention.metrics)):
            before = self.now - timedelta(seconds=seconds)
            done.rows[name] = trim(self.lake.delta, name, when, before, dry_run=self.dry_run)
