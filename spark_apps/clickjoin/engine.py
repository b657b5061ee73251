"""Runs a pipeline: hands batches from the dispatcher to the seven steps, and keeps going."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin import batch_metrics
from clickjoin.batch import carry_through
from clickjoin.chain.source import open_input
from clickjoin.dispatcher.dispatcher import Clock, Dispatcher
from clickjoin.dispatcher.pacing import IDLE_SECONDS, Passes, wait
from clickjoin.dispatcher.unread import ReadUntil, primary_passed
from clickjoin.engines.choose import open_lake
from clickjoin.engines.context import Context
from clickjoin.joiner.adapter import adapter_of
from clickjoin.joiner.typed_output import with_types
from clickjoin.lake.clock import LakeClock
from clickjoin.lake_setup import initialise
from clickjoin.model import failpoint
from clickjoin.model.batch_plan import BatchPlan, TableSplit
from clickjoin.model.ids import MICROS
from clickjoin.model.names import replica_name
from clickjoin.model.split import Problem
from clickjoin.overlap import NOTHING, Ahead, Overlap
from clickjoin.registry.boundary import load_bounds
from clickjoin.registry.shards import load_timeline
from clickjoin.retry.due import Waiting, look_ahead
from clickjoin.retry.redrives import Redrives
from clickjoin.rounds import Rounds, Settled
from clickjoin.sources.open import open_source
from clickjoin.sources.port import Source
from clickjoin.sources.reach import driver_reads
from clickjoin.sources.shared_files import require_apart
from clickjoin.spark.session import make_active, planned_at_once, tune_codegen

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.spark.lazy import Session

SETTLING_SECONDS = 15.0


class Engine:
    """One replica of one pipeline on one Spark session, which is started when it is needed. For one thread."""

    def __init__(
        self,
        spark: Session,
        pipeline: Pipeline,
        replica: str = "main",
        *,
        clock: Clock | None = None,
        sources: Mapping[str, Source] | None = None,
        agreeing: bool = True,
    ) -> None:
        """`agreeing`: refuse tables that do not fit together, as anyone who repairs them must not."""
        self.replica = replica_name(replica)
        self.lake = open_lake(spark, pipeline)
        if not sources:
            require_apart(pipeline)
        here = frozenset[str]() if sources else driver_reads(self.lake.started, pipeline)
        initialise(pipeline, self.lake.delta, agreeing=agreeing)
        self.pipeline = pipeline = with_types(pipeline, self.lake.delta)  # by now those of the table
        self.adapter = adapter_of(pipeline)
        now = time.time if clock else LakeClock(pipeline.root)  # files' own times are set by no clock that is given
        tasks, group = pipeline.batch.parallelism, f"{pipeline.pipeline}-{self.replica}"
        self.sources: dict[str, Source] = dict(
            sources
            or {item.name: open_input(item, now=now, tasks=tasks, here=here, group=group) for item in pipeline.inputs}
        )
        self.clock = clock = clock or now
        self.join = Dispatcher(pipeline, self.lake.delta, replica, "join", self.sources, clock)
        self._overlap = Overlap(self.join, self.sources)
        self.retry = Dispatcher(pipeline, self.lake.delta, replica, "retry", clock=clock)
        self.redriver = Dispatcher(pipeline, self.lake.delta, replica, "redrive", clock=clock)
        self._redrives = Redrives(pipeline, self.lake, self.adapter, self.redriver, clock)
        self.read_until = ReadUntil(
            pipeline, self.lake.delta, self.replica,
            lambda item: sources[item.name] if sources else open_source(item.source, keep=False),
        )  # fmt: skip
        self._looked: tuple[tuple[int, int | None], Waiting] | None = None
        self.rounds = Rounds(self)
        self._floods: dict[str, Problem | None] = {}

    def copy(self, replica: str, spark: Session | None = None, sources: Mapping[str, Source] | None = None) -> Engine:
        """An engine like this one for another replica, on a session of its own, or with other sources."""
        spark = spark or self.lake.session
        return Engine(spark, self.pipeline, replica, clock=self.clock, sources=sources or self.sources)

    def warm_up(self, *, spark: bool = True) -> None:
        """Open what a batch of new records needs, so that the first takes no longer than those after it.

        `spark`: have Spark's workers load what they need, too, if it has been started.
        """
        delta = self.lake.delta
        for name in ("primary", "foreign", "registry", "joined", "metrics"):
            delta.version(name)
        load_timeline(delta)
        load_bounds(delta)
        self.join.known()
        if spark:
            self.lake.warm_up(self.adapter)

    def join_once(self) -> Settled | None:
        """Run the next batch of new records; None where there is none."""
        ahead = self._overlap.take()
        start = time.perf_counter()
        plan = self.join.next_join(ahead.proposal)
        return self._run(plan, self.join, time.perf_counter() - start, ahead) if plan else None

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the sources, as of the last look at them, or with nearly all that came from them."""
        seen = tuple(problem for part in self.join.found.values() for problem in part.problems)
        return seen + tuple(problem for problem in self._floods.values() if problem)

    def waiting(self) -> Waiting:
        """What waits for its primary now; looks at the table again only when it has changed or something fell due."""
        version, now = self.lake.delta.version("pending"), self.now()
        known = self._looked
        if known and known[0][0] == version and not known[1].all:
            return known[1]
        at = (version, self.passed() if self.pipeline.match else None)
        if known and known[0] == at and not (known[1].next_due and known[1].next_due <= now):
            return known[1]
        most = self.pipeline.retry.max_attempts
        found = look_ahead(self.lake.delta, self.replica, version, now, self._far(now), most, at[1])
        self._looked = (at, found)
        return found

    def retry_once(self) -> Settled | None:
        """Try again what is due; None where nothing is."""
        with self.lake.delta.looked_at("journal", "pending"):
            return self._retry_once()

    def _retry_once(self) -> Settled | None:
        start = time.perf_counter()
        plan = self.retry.unsettled()
        if plan is None:
            now = self.now()
            if not self.waiting().due or self._looked is None:
                return None
            due, far = (int(at.timestamp() * MICROS) for at in (now, self._far(now)))
            read = self.read_until(due) if self._looked[1].ending else None
            part = TableSplit(
                "pending", self._looked[0][0], due, self.pipeline.batch.max_events, far=far, read_until=read,
                passed=self.passed(),
            )  # fmt: skip
            plan = self.retry.next_of_table(part)
        return self._run(plan, self.retry, time.perf_counter() - start) if plan else None

    def passed(self) -> int | None:
        """What `TableSplit.passed` is to be by now: None unless events are given up by the watermark."""
        if not self.pipeline.by_watermark:
            return None
        return primary_passed(self.pipeline, self.lake.delta, self.replica)

    def redrive(self, span: tuple[int, int] | None = None) -> int:
        """Send this replica's unjoinable events again; see Redrives.run."""
        return self._redrives.run(span)

    def finish_redrive(self) -> int:
        """Finish a redrive batch that was cut short, if there is one; returns how many events it sent again."""
        return self._redrives.finish()

    def finish(self, plan: BatchPlan) -> Settled:
        """Carry an unsettled join or retry batch through, of whichever replica; it must have landed."""
        delta = self.lake.delta
        delta.ensure_durable("journal")
        dispatcher = Dispatcher(self.pipeline, delta, plan.replica, plan.sequence, self.sources, self.clock)
        return self._run(plan, dispatcher, 0.0)

    def run(
        self,
        seconds: float | None,
        *,
        retries: bool,
        done: Callable[[Settled], None],
        stop: Callable[[], bool] = lambda: False,
        problems: Callable[[tuple[Problem, ...]], None] = lambda _: None,
    ) -> None:
        """Work through batches for some seconds (indefinitely if None), then return between two batches."""
        end = None if seconds is None else time.monotonic() + seconds
        retries = retries or self.pipeline.stream is not None  # there it is what a repair has put back, and no more
        if retries:
            self.finish_redrive()
        while not stop() and (end is None or time.monotonic() < end):
            wait(self.rounds.once(retries=retries, done=done, problems=problems).due, stop, end)

    def drain(self, done: Callable[[Settled], None]) -> Waiting:
        """Work through all that the sources hold and all retries whose time has come; returns what still waits.

        None of it is due, but where retries fall due faster than they are tried (see Passes).
        """
        self.finish_redrive()
        patience, passes = time.monotonic() + SETTLING_SECONDS, Passes()
        while True:
            item, left = self.join_once(), None
            if item:
                passes = Passes()
            else:
                left = self.waiting()
                if self.retry.unsettled() or passes.goes_on(left.next_due, self.now()):
                    item = self.retry_once()
            if item:
                done(item)
                patience = time.monotonic() + SETTLING_SECONDS
            elif left and (not self._unread() or time.monotonic() > patience):
                return left
            else:  # a packed file that was written just now is read once it has come to rest
                time.sleep(IDLE_SECONDS)

    def _unread(self) -> bool:
        return any(part.backlog_bytes for part in self.join.found.values())

    def now(self) -> datetime:
        """The time by this engine's clock, UTC."""
        return datetime.fromtimestamp(self.clock(), UTC)

    def _far(self, now: datetime) -> datetime:
        """No retry is put off until after this, but by a clock that was ahead: then it is due."""
        return now + timedelta(seconds=self.pipeline.retry.max_delay + self.pipeline.limits.max_skew)

    def _run(self, plan: BatchPlan, dispatcher: Dispatcher, plan_seconds: float, ahead: Ahead = NOTHING) -> Settled:
        delta = self.lake.delta
        make_active(self.lake.started)
        # Read after the plan was written: anyone who moves the boundary later sees this batch as unsettled, and waits.
        with delta.looked_at("shard_timeline", "registry_boundary", "journal"):
            ctx = Context(self.pipeline, self.lake, plan, self.adapter, load_timeline(delta), *load_bounds(delta))
        ctx.seconds |= {"plan": plan_seconds, "land": ahead.waited}
        before = self.lake.conflict_reruns
        events = sum(split.events for splits in plan.splits.values() for split in splits)
        tune_codegen(self.lake.started, events)
        follow = self._overlap.begin if dispatcher is self.join else lambda _: None
        # How many a retry takes up is not known before it has.
        with planned_at_once(self.lake.started, self.pipeline.batch.max_events if plan.table else events):
            lost = carry_through(ctx, self.sources, ahead.landed, follow)
            self._floods |= ctx.floods
            ctx.counts["conflict_reruns"] = self.lake.conflict_reruns - before
            with ctx.step("settle"):
                row = batch_metrics.row(ctx, self.now(), self._floods)
                delta.append("metrics", [row], plan.txn)
                dispatcher.settled(plan, lost, ctx.newest)
        failpoint.reach("settled")
        return Settled(plan, row)
