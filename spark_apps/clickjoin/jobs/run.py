"""The jobs of a shell: joining indefinitely, through lost servers and conflicts; or until all is drained."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.unsettled import unsettled
from clickjoin.engine import Engine
from clickjoin.event_store.bad_input import BROKEN, FLOOD, all_bad
from clickjoin.model.errors import ClickjoinError, ConfigError
from clickjoin.model.reporter import Reporter
from clickjoin.model.split import Problem
from clickjoin.model.where import in_words
from clickjoin.report.accounts import Accounts, Batches, account, distinct, kept_since
from clickjoin.report.status import replicas
from clickjoin.report.summary import Summary
from clickjoin.rounds import Settled
from clickjoin.spark.executor_failures import gist
from clickjoin.spark.failures import lost_jvm, translate

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.spark.lazy import Session

_MAX_PAUSE = 30.0
PATIENCE, _LOOK_SECONDS = 120.0, 0.5
_ONCE = (FLOOD, BROKEN, "lost-tail", "rewritten", "source-lost")  # only the look which finds them tells of these
_BLOCKING = ("missing", "unreadable", "lost-tail", "source-lost", "misfits", "nothing-joined", FLOOD, BROKEN)
_FEWEST = 20  # events of each stream, none of which has met another


def run(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, lease: float | None = None
) -> dict[str, Any]:
    """Join and retry until a signal or the end of the lease (seconds; None: none).

    A batch that failed is run again after a growing pause.

    Errors: those that no retry can fix, and a Spark server that is gone for good.
    """
    with _signals() as stopped:
        return _run(spark, pipeline, replica, report, lease, stopped)


@contextmanager
def _signals() -> Iterator[list[int]]:
    """What came of SIGTERM and SIGINT, which end nothing by themselves meanwhile."""
    stopped: list[int] = []
    before = {
        name: signal.signal(name, lambda number, _: stopped.append(number)) for name in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stopped
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _run(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, lease: float | None, stopped: list[int]
) -> dict[str, Any]:
    summary, failures = Summary(report), 0
    end = None if lease is None else time.monotonic() + lease
    engine = Engine(spark, pipeline, replica)
    while not stopped and (end is None or time.monotonic() < end):
        try:
            engine.run(
                1.0 if end is None else min(1.0, end - time.monotonic()),
                retries=True,
                done=summary.add,
                stop=lambda: bool(stopped),
                problems=summary.note,
            )
            failures = 0
        except Exception as error:
            known = translate(error)
            if isinstance(known, ConfigError) and known is not error:
                raise known from error
            if (isinstance(error, ClickjoinError) and not error.retryable) or lost_jvm(error):
                raise
            failures += 1
            pause = min(0.5 * 2**failures, _MAX_PAUSE)
            shown = known or error
            report(f"batch failed ({type(shown).__name__}: {gist(shown)}); again in {pause:.0f} s")
            if failures > 8:
                raise
            time.sleep(pause)
            engine = Engine(spark, pipeline, replica)
    return summary.to_dict()


def drain(spark: Session, pipeline: Pipeline, replica: str, report: Reporter, *, check: bool = True) -> dict[str, Any]:
    """Drain a pipeline; `ok` is False where the sums do not agree or a source has a problem.

    `events_in` and `pending` are distinct events of this run, by id and time, however often each was tried. `waiting`,
    `due` and `next_due` are of all events of the replica that wait at its end.
    """
    summary, batches = Summary(report), Batches(replica)
    start = time.perf_counter()
    engine = Engine(spark, pipeline, replica)
    once: dict[tuple[str, str], Problem] = {}

    def done(item: Settled) -> None:
        summary.add(item)
        batches.add(item.plan)
        once.update({(problem.kind, problem.path): problem for problem in engine.problems() if problem.kind in _ONCE})

    left = engine.drain(done)
    seconds = time.perf_counter() - start
    lasting = (problem for problem in engine.problems() if problem.kind not in _ONCE)
    accounts = counted(engine, report) if check else None
    idle = _took_nothing(pipeline, accounts, summary.counts["passed_over"]) if accounts else ()
    bad = _all_bad(engine, accounts) if accounts and summary.counts["quarantined"] else ()
    once.update({(problem.kind, problem.path): problem for problem in bad if (FLOOD, problem.path) not in once})
    apart = _nothing_joined(pipeline, accounts) if accounts else ()
    summary.note((*lasting, *once.values(), *summary.null_columns(), *idle, *apart))
    result = summary.to_dict() | asdict(distinct(engine.lake, batches))
    next_due = left.next_due.isoformat() if left.next_due else None
    result |= {"seconds": round(seconds, 3), "waiting": left.all, "due": left.due, "next_due": next_due}
    if accounts:
        result["accounts"] = accounts.to_dict()
    blocking = [p for p in result["problems"] if p["kind"] in _BLOCKING]
    result["ok"] = not blocking and (not check or result["accounts"]["agree"])
    return result


def _all_bad(engine: Engine, accounts: Accounts) -> Iterator[Problem]:
    """Streams of which no record was ever good, and some are in quarantine, be they few: a file is a record then."""
    counts = accounts.to_dict()
    for item in engine.pipeline.inputs:
        if 0 < counts[f"{item.role}_records"] <= counts[f"{item.role}_quarantined"]:
            columns = ["reason", "detail"]
            yield all_bad(item, engine.lake.delta.read("quarantine", [("stream", "=", item.name)], columns))


def _took_nothing(pipeline: Pipeline, accounts: Accounts, passed_over: int) -> Iterator[Problem]:
    """Streams whose `where` holds for no record that was ever read, while some are left over: misspelt most likely."""
    records = {"primary": accounts.primary_records, "foreign": accounts.foreign_records}
    for item in pipeline.inputs:
        if item.stream.where and passed_over and not records[item.role]:
            yield Problem(
                "took-nothing",
                f"{item.section}.where",
                f"no record has matched yet ({in_words(item.stream.where)}), and {passed_over:,} records of this drain "
                "matched neither stream; `clickjoin validate` looks at some of them",
            )


def _nothing_joined(pipeline: Pipeline, accounts: Accounts) -> Iterator[Problem]:
    """That no foreign event has ever met a primary one, of which there are enough: an id, a time or a zone is wrong.

    Of joins by a key and time, one that waits has its primary event still to come.
    """
    apart = accounts.unjoinable + (0 if pipeline.match else accounts.pending)
    if pipeline.foreign and min(apart, accounts.primary_events) >= _FEWEST and not accounts.joined + accounts.filtered:
        yield Problem(
            "nothing-joined",
            "foreign",
            f"none of {apart:,} foreign events has met one of {accounts.primary_events:,} primary events: `clickjoin "
            "validate` says why",
        )


def counted(engine: Engine, report: Reporter, patience: float = PATIENCE) -> Accounts:
    """Count every id; again where the sums do not agree and batches of other copies were under way meanwhile.

    Between landing and publishing, an event of such a batch is in no place. `patience`: seconds until the last count.
    """
    lake, pipeline = engine.lake, engine.pipeline
    end = time.monotonic() + patience
    while True:
        since = kept_since(pipeline, lake, datetime.fromtimestamp(engine.clock(), UTC))
        journal = lake.delta.version("journal")
        tokens = [plan.token for plan in unsettled(lake.delta, pipeline)]
        found = account(lake, replicas(lake.delta), since, pipeline.repeats)
        is_quiet = not tokens and lake.delta.version("journal") == journal
        if found.agree or is_quiet or time.monotonic() > end:
            return found
        report(
            f"the sums do not agree yet; counting again (batches in flight: {', '.join(tokens) or 'settled meanwhile'})"
        )
        while time.monotonic() < end and unsettled(lake.delta, pipeline):
            time.sleep(_LOOK_SECONDS)
