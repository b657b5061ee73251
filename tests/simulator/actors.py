"""The processes of a schedule: the product's own jobs, run as a scheduler or a shell would run them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.dates.late_events import join_expired, try_again
from clickjoin.engine import Engine
from clickjoin.gc.collector import Collector
from clickjoin.gc.compaction import clean, maintain
from clickjoin.kernel.adapter import needs_spark
from clickjoin.model.errors import BatchError, ClickjoinError, ClockError, ConfigError, LakeError
from clickjoin.model.ids import MICROS
from clickjoin.model.span import Span
from clickjoin.registry.reshard import reshard
from clickjoin.verification.verify import Verifier, Wanted
from tests.simulator.chain import TableSource
from tests.simulator.logs import Logs, LogSource
from tests.simulator.model import Commit, Unanswered
from tests.simulator.rust_types import DeltaError
from tests.simulator.session import SparkSession
from tests.simulator.world import START, Process, Violation, World

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.sources.port import Source
    from tests.simulator.local_times import Differing

_ADDS = ("join", "redrive", "verify", "harm", "fill")  # what may leave events that wait
Work = Callable[[Engine, Process], bool]


class Cast:
    """Makes the processes of one pipeline in one world."""

    def __init__(self, world: World, pipeline: Pipeline, logs: Logs, upstream: Cast | None = None) -> None:
        self.world = world
        self.pipeline = pipeline
        self.logs = logs
        self.upstream = upstream  # whose output is this one's primary stream
        self.replicas: set[str] = set()
        self.idle: dict[str, float] = {}  # seconds at most between two looks at the logs, by replica
        self.times: Differing | None = None  # what each replica reads times by
        self.budgets = False  # each takes another number of events at most, and works ahead
        self.goes_on = 0.0  # seconds that joins go on once they have read all of the logs
        self._all_read: dict[str, float] = {}  # when a replica had done so
        self._tries: Counter[str] = Counter()  # batches of a process that tries again

    def engine(self, replica: str) -> Engine:
        """A new process's engine."""
        spark, names = SparkSession(self.world.lake), [item.name for item in self.pipeline.inputs]
        sources: dict[str, Source] = {
            name: LogSource(self.world, self.logs, name, ahead=self.budgets) for name in names
        }
        if self.upstream:
            sources["primary"] = TableSource(f"{self.upstream.pipeline.root}/joined")
        pipeline = self.times.pipeline(replica) if self.times else self.pipeline
        if self.budgets:
            own = {"max_events": self.world.random.choice([1, 2, 4, 7]), "driver_bytes": 100, "catch_up_share": 1}
            pipeline = pipeline.model_copy(update={"batch": pipeline.batch.model_copy(update=own)})
        return Engine(spark, pipeline, replica, clock=self.world.clock, sources=sources)  # type: ignore[arg-type]

    def start(self, replica: str, role: str, skew: float, main: Callable[[Process], None], after: float) -> None:
        """Start a process of this pipeline, after some seconds."""
        self.replicas.add(replica)
        self.world.start(replica, role, skew, main, after)

    def runs(self, *roles: str) -> bool:
        """Whether a process of this pipeline is at work, in one of some roles; with none, in any."""
        mine = [process for process in self.world.processes if process.replica in self.replicas]
        return any(not roles or process.role in roles for process in mine)

    def job(self, work: Work) -> Callable[[Process], None]:
        """A process that works until there is nothing left, with a new engine after an error that may pass."""

        def main(process: Process) -> None:
            engine, failures = None, 0
            while True:
                try:
                    engine = engine or self.engine(process.replica)
                    if work(engine, process):
                        return
                    failures = 0
                except (ClickjoinError, Unanswered, DeltaError) as error:
                    engine, failures = None, failures + 1
                    self.world.note(f"{type(error).__name__}: {error}")
                    put_back = self.world.counts.get("restored") and "is older than" in str(error)
                    if isinstance(error, LakeError) and (self.world.struck or put_back):
                        self.world.refusals.append(str(error))
                        return
                    if self.world.struck and isinstance(error, DeltaError):
                        raise Violation(f"raw error: {error}") from None
                    if not self._corrected(process, error) and (not may_pass(error) or failures > 8):
                        raise
                    self.world.sleep(2.0**failures)

        return main

    def _corrected(self, process: Process, error: Exception) -> bool:
        return self.times is not None and self.times.corrects(process.replica, error)

    def join(self, engine: Engine, process: Process) -> bool:
        """New records; done when the logs are complete and read, and time has passed by itself where it does."""
        over = not self.world.live and self.world.now >= self.world.complete
        complete = over and not (self.upstream and self.upstream.runs())
        worked = engine.join_once()
        if complete and (self._has_gone_on(engine) if self.goes_on else not worked):
            return True
        if not worked:
            self.world.sleep(self.world.random.uniform(0.2, self.idle.get(process.replica, 6.0)))
        return False

    def _has_gone_on(self, engine: Engine) -> bool:
        """Not when no batch is due: where one takes as long as makes the next one due, that never comes."""
        known, now = engine.join.known().offsets, self.world.now
        if not all(self.logs.all_read(name, known.get(name, {})) for name in ("primary", "foreign")):
            return False
        return now >= self._all_read.setdefault(engine.replica, now) + self.goes_on

    def retry(self, engine: Engine, process: Process) -> bool:
        """What is due; done when no join can add to it, and nothing waits."""
        joining = self.world.live or self.runs(*_ADDS)
        if engine.retry_once():
            self._tries[process.name] += 1
            return self.world.struck and not joining and self._tries[process.name] > 40  # its primary event is lost
        waits = engine.waiting()
        if not joining and engine.retry.unsettled() is None and (not waits.all or self.world.refusals):
            return True  # nothing is left, or what it waits for nobody joins any more
        due = waits.next_due.timestamp() - self.world.clock() if waits.next_due else 10.0
        self.world.sleep(min(max(due, 0.5), 10.0))
        return False

    def redrive(self, engine: Engine, process: Process) -> bool:
        """Once, by hand."""
        engine.redrive()
        return True

    def collector(self, times: int, patience: float) -> Callable[[Process], None]:
        """GC, some times, and the rewriting of buckets after it, open ones too."""
        left = [times]

        def collect(engine: Engine, process: Process) -> bool:
            now = datetime.fromtimestamp(self.world.clock(), UTC)
            work = Collector(self.pipeline, engine.lake, now, engine.finish, self.world.note, patience=patience)
            work.collect()
            if self.world.random.random() < 0.5:
                maintain(self.pipeline, engine.lake, now, self.world.note, crowd=2)
                try:
                    clean(self.pipeline, engine.lake.delta, self.world.note)
                except ClockError as error:
                    self.world.note(f"refused: {error}")
            left[0] -= 1
            self.world.sleep(self.world.random.uniform(1, 90))
            return left[0] <= 0

        return self.job(collect)

    def verifier(self, times: int, patience: float, *, fixes: bool = False) -> Callable[[Process], None]:
        """Verification with repair, beside all the others. There is nothing to be found, unless somebody does harm."""
        left = [times]

        def verify(engine: Engine, process: Process) -> bool:
            quiet = not self.world.live and not self.runs("join", "harm")
            some = None if self.world.random.random() < 0.5 and not fixes else datetime.fromtimestamp(START - 300, UTC)
            wanted = Wanted(since=some, repair=True, remove_doubles=True)
            report = Verifier(engine, self.world.note, patience=patience).verify(wanted)
            wrong = {count.kind for count in report.counts if count.fault and count.count}
            if not self.world.struck and wrong - ({"claim_without_output", "lost"} if fixes else set()):
                raise Violation(f"verification found: {report.to_dict()}")
            left[0] -= 1
            self.world.sleep(self.world.random.uniform(1, 60))
            return quiet and not wrong if fixes else left[0] <= 0

        return self.job(verify)

    def repairer(self) -> Callable[[Process], None]:
        """Verification with repair until nothing is left, of all that is there, once everybody else has ended."""
        tries = [8]

        def repair(engine: Engine, process: Process) -> bool:
            wanted = Wanted(since=datetime.fromtimestamp(START - 400, UTC), repair=True, remove_doubles=True)
            report = Verifier(engine, self.world.note, patience=0).verify(wanted)
            left = {count.kind: count.count for count in report.counts if count.fault and count.count}
            self.world.counts["fixed"] = self.world.counts.get("fixed", 0) + bool(left)
            tries[0] -= 1
            if left and not tries[0]:
                raise Violation(f"nothing puts it right: {left}")
            return not left

        return self.job(repair)

    def filler(self, times: int) -> Callable[[Process], None]:
        """Fills dates: tries again what waits or was given up, and joins what expired, beside all the others."""
        left = [times]

        def fill(engine: Engine, process: Process) -> bool:
            self.world.sleep(self.world.random.uniform(1, 60))
            now = self.world.clock()
            span = Span(datetime.fromtimestamp(START - 300, UTC), datetime.fromtimestamp(now, UTC))
            if self.world.random.random() < 0.5 or engine.redriver.unsettled():  # what was cut short goes first
                try_again(engine, span)
            if not needs_spark(engine.adapter):  # one of whole DataFrames is refused
                join_expired(engine, span, int(now * MICROS), patience=4)
            left[0] -= 1
            return left[0] <= 0

        return self.job(fill)

    def vandal(self, times: int) -> Callable[[Process], None]:
        """Removes rows of the output by hand."""

        def main(process: Process) -> None:
            lake = self.world.lake
            table = lake.tables[f"{self.pipeline.root}/joined"]
            for _ in range(times):
                self.world.sleep(self.world.random.uniform(5, 60))
                for file in list(table.newest.files.values())[-1:]:
                    self.world.note(f"harm: {[row['event_id'] for row in file.rows]} removed from joined")
                    commit = Commit(removes=frozenset([file.path]))
                    table.add(commit)
                    lake.seen(table, commit)

        return main

    def resharder(self, counts: list[int]) -> Callable[[Process], None]:
        """Other numbers of shards, as soon as is allowed; what is refused is given up."""
        left = list(counts)

        def change(engine: Engine, process: Process) -> bool:
            if not left:
                return True
            shards, now = left.pop(0), datetime.fromtimestamp(self.world.clock(), UTC)
            soon = now + 2 * timedelta(seconds=self.pipeline.limits.max_skew)
            soon = soon.replace(second=0, microsecond=0) + timedelta(seconds=60)
            try:
                reshard(engine.lake.delta, self.pipeline, shards, self.world.random.choice([None, soon]), now)
            except (ConfigError, LakeError) as error:
                self.world.note(f"refused: {error}")
            self.world.sleep(self.world.random.uniform(1, 90))
            return False

        return self.job(change)


def may_pass(error: Exception) -> bool:
    """Whether a process that ends with it is started again."""
    if isinstance(error, ClickjoinError):
        return error.retryable and not isinstance(error, BatchError)
    return "Input/output error" in str(error)
