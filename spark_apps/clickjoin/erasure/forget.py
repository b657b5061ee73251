"""Forgetting events while joins run. The order is what makes it safe, and every step can be repeated.

(1) The events are put on the list: no batch that is planned from here on lands a record of theirs. (2) Those without a
claim get one, of outcome `forgotten`, so that no batch joins them any more. (3) Batches that were planned before are
waited for; one that has claimed is carried through, for it must still find its records. Whatever they have landed or
joined meanwhile is put on the list too. (4) The records are taken out of all tables; and once more if a batch that
reads an older version of a table (a retry, a redrive, a recovery) was under way. Cut short anywhere, the same request
again does the rest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.agreement.noted import note
from clickjoin.dispatcher.unsettled import unsettled, wait
from clickjoin.engines.extents import bucket_sql, measured
from clickjoin.erasure.select import named_by, select
from clickjoin.erasure.wanted import Wanted
from clickjoin.forgotten.known import Events, add, as_arrow, forgotten
from clickjoin.forgotten.sweep import left, sweep
from clickjoin.model import failpoint
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.reporter import Reporter
from clickjoin.model.shards import claims_since, expired_sql
from clickjoin.registry.boundary import load_boundary
from clickjoin.registry.shards import load_timeline
from clickjoin.schemas import REGISTRY
from clickjoin.spark.rows import first_of_key

if TYPE_CHECKING:
    from clickjoin.engine import Engine
    from clickjoin.model.batch_plan import BatchPlan

_ROUNDS = 10
_BY_VERSION = ("retry", "redrive", "recover")
_SAMPLES = 5
FILE_SLACK = timedelta(hours=1)  # a file may be so much older than the commit that names it (lake.vacuum)


@dataclass(frozen=True)
class Erasure:
    """One request. `name` is written down with each event; `patience`: seconds to wait for batches under way."""

    engine: Engine
    wanted: Wanted
    name: str
    report_line: Reporter
    patience: float = 60.0

    def look(self) -> dict[str, Any]:
        """What would go, and nothing changes: events, rows by table, some ids."""
        events = self._meant()
        rows = left(self.engine.lake, self._with_listed(events), self._bucket_seconds)
        return self._summary(events, rows, ()) | {"dry_run": True}

    def apply(self) -> dict[str, Any]:
        """Do it. `open`: batches that were planned before, and may still land a record."""
        events, open_ = self._fixed()
        listed = self._with_listed(events)
        done = Counter(sweep(self.engine.lake, listed, self._bucket_seconds))
        failpoint.reach("swept")
        if [plan for plan in unsettled(*self._journals) if plan.sequence in _BY_VERSION]:
            open_ = [plan for plan in open_ if plan.sequence not in _BY_VERSION] + self._settle(_BY_VERSION)
            done.update(sweep(self.engine.lake, listed, self._bucket_seconds))
        return self._summary(events, dict(done), open_) | {"dry_run": False}

    @property
    def _journals(self) -> Any:
        return self.engine.lake.delta, self.engine.pipeline

    @property
    def _bucket_seconds(self) -> int:
        return int(self.engine.pipeline.registry.bucket)

    def _now(self) -> datetime:
        return moment(int(self.engine.clock() * MICROS))

    def _meant(self) -> Events:
        """Events that the request names; where it names none, all that was ever forgotten."""
        if self.wanted.conditions or self.wanted.ids:
            return select(self.engine.lake, self.wanted)
        known = forgotten(self.engine.lake.delta)
        return known | Events({"foreign": named_by(self.engine.lake, known.of("primary"))})

    def _with_listed(self, events: Events) -> Events:
        """And all that is on the list: of a request that was cut short, emptied records say no more whose they were."""
        return events | forgotten(self.engine.lake.delta)

    def _fixed(self) -> tuple[Events, list[BatchPlan]]:
        """Put all that is meant on the list, until batches from before have added nothing to it."""
        events, open_ = Events(), list[Any]()
        for turn in range(_ROUNDS):
            events |= self._meant()
            new = events - forgotten(self.engine.lake.delta)
            if turn and not new:
                break
            if new:
                add(self.engine.lake.delta, new, self.name, self._now(), self._bucket_seconds)
            failpoint.reach("listed")
            self._claim(events)
            failpoint.reach("claims-kept")
            open_ = self._settle()
        self._claim(events)  # of an unjoinable event that was sent round again the claim was gone meanwhile
        note(self.engine.lake.delta, REGISTRY.name)  # a registry of before would let them through
        return events, open_

    def _claim(self, events: Events) -> None:
        """Claim what has no claim: nobody joins it then. Where the registry holds none any more nobody does anyway."""
        lake, keys = self.engine.lake, events.of("foreign")
        if not keys:
            return
        delta, micros = lake.delta, int(self.engine.clock() * MICROS)
        token = f"{self.engine.pipeline.pipeline}/{self.engine.replica}/forget/{micros}"
        rows = lake.spark.createDataFrame(as_arrow(keys)).withColumns(
            {
                "bucket": F.expr(bucket_sql("event_time", self._bucket_seconds)),
                "shard": F.expr(load_timeline(delta).sql()),
                "token": F.lit(token),
                "outcome": F.lit("forgotten"),
            }
        )
        kept = claims_since(load_boundary(delta), self.engine.pipeline.repeats)
        rows = rows.where(f"NOT {expired_sql(kept)}").select(*REGISTRY.names)
        if self.engine.pipeline.by_id:  # an id that landed more than once has one claim all the same
            rows = first_of_key(rows, "event_time", key=("event_id",))
        rows = rows.localCheckpoint(eager=False)
        own, _ = measured(rows)
        if own.rows:
            lake.insert_new(REGISTRY.name, rows.toArrow(), own, by_id=self.engine.pipeline.by_id)

    def _settle(self, sequences: tuple[str, ...] = ()) -> list[BatchPlan]:
        """Wait for batches under way; carry those through that anyone can. Returns those that are open still."""
        delta = self.engine.lake.delta
        open_ = [plan for plan in unsettled(*self._journals) if not sequences or plan.sequence in sequences]
        still = []
        for plan in wait(delta, open_, self.patience, self.engine.lake.sleep):
            claimed = delta.latest_txn_version(REGISTRY.name, plan.txn.app_id) >= plan.number
            if plan.sequence == "retry" or (plan.sequence == "join" and claimed):
                self.engine.finish(plan)
                self.report_line(f"{plan.token}: a batch that was in flight is finished first")
            else:
                still.append(plan)
        return still

    def _summary(self, events: Events, rows: dict[str, int], open_: Any) -> dict[str, Any]:
        gone = self._now() + timedelta(seconds=self.engine.pipeline.retention.files) + FILE_SLACK
        return {
            "request": self.name,
            "events": {name: len(events.of(name)) for name in ("primary", "foreign")},
            "bad_records": sum(len(some) for some in events.digests.values()),
            "rows": dict(sorted(rows.items())),
            "samples": {
                name: [key for key, _ in sorted(events.of(name))[:_SAMPLES]] for name in ("primary", "foreign")
            },
            "open": [plan.token for plan in open_],
            "bytes_kept_until": gone.isoformat(),
        }
