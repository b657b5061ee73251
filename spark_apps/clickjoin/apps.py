"""The jobs that a scheduler runs: the same code from the CLI, from Airflow over Spark Connect, under spark-submit."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.config import Pipeline, load
from clickjoin.engine import Engine, Settled
from clickjoin.errors import ConfigError, SourceError
from clickjoin.jobs import JOBS, function
from clickjoin.known import require_lake
from clickjoin.lake import clock
from clickjoin.private import keep_private
from clickjoin.replicas import joining_name, require_known
from clickjoin.report.status import COUNTS, batch_text, problem_text
from clickjoin.sources.base import Problem
from clickjoin.times import parse_moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Say = Callable[[str], None]
Lease = float | None  # seconds


class Summary:
    """What a run of batches did: counts, the newest latency and backlog, and problems of the sources."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.batches = 0
        self.counts = dict.fromkeys(COUNTS, 0)
        self._newest: dict[str, Any] = {}
        self.problems: tuple[Problem, ...] = ()
        self._caught_up = time.monotonic()

    def add(self, settled: Settled) -> None:
        """Take in a settled batch, and say a line about it."""
        row = dict(settled.metrics)
        self.batches += 1
        for name in COUNTS:
            self.counts[name] += int(str(row[name] or 0))
        self._newest |= {key: row[key] for key in ("backlog_events",) if row["sequence"] == "join"}
        if row["sequence"] == "join" and not row["backlog_events"]:
            self._caught_up = time.monotonic()
        self._newest |= {"latency_p90": row.get("latency_p90") or self._newest.get("latency_p90")}
        self._say(batch_text(row, datetime.now(UTC).strftime("%H:%M:%S")))

    def note(self, problems: tuple[Problem, ...]) -> None:
        """Take in what is wrong with the sources; says it when it has changed."""
        for problem in problems:
            if problem not in self.problems:
                self._say(problem_text(problem.kind, problem.path, problem.detail))
        self.problems = problems

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data, fit for JSON and for Airflow's XCom.

        `lag_seconds`: 0 where the last join batch left nothing unplanned, else how long ago, at least, one did so.
        """
        backlog = self._newest.get("backlog_events") or 0
        return {
            "batches": self.batches,
            **self.counts,
            "backlog_events": backlog,
            "lag_seconds": round(time.monotonic() - self._caught_up, 1) if backlog else 0.0,
            "latency_p90": self._newest.get("latency_p90"),
            "problems": [asdict(problem) for problem in self.problems],
        }


def _engine(spark: SparkSession, pipeline: Pipeline, replica: str, begun: bool) -> Engine:
    """An engine. `begun`: it has worked before, so a lake that holds no tables now is one that is gone: LakeError."""
    if begun:
        require_lake(pipeline.root)
    return Engine(spark, pipeline, replica)


def join(
    spark: SparkSession, pipeline: Pipeline, replica: str, say: Say, lease: Lease = None, *, begun: bool = False
) -> dict[str, Any]:
    """Work through batches of new records for the pipeline's lease (or for `lease` seconds). `begun`: see _engine."""
    summary = Summary(say)
    seconds = pipeline.batch.lease if lease is None else lease
    engine = _engine(spark, pipeline, joining_name(replica), begun)
    engine.run(seconds, retries=False, done=summary.add, problems=summary.note)
    missing = [problem for problem in summary.problems if problem.kind == "missing"]
    if missing:  # all else has been done by now: fail, so that somebody hears of it
        raise SourceError(
            missing[0].detail if missing[0].path in missing[0].detail else f"{missing[0].path}: {missing[0].detail}",
            remedy="Mount the folder, or fix source.path in the pipeline's file",
        )
    return summary.to_dict()


def retry(
    spark: SparkSession,
    pipeline: Pipeline,
    replica: str,
    say: Say,
    lease: float | None = None,
    *,
    may_be_new: bool = False,
    begun: bool = False,
) -> dict[str, Any]:
    """Try the pending events that are due, until none is or the lease is over. `begun`: see _engine.

    Errors: ConfigError for a replica that has never joined, unless it `may_be_new`, as one that a scheduler has begun.
    """
    summary = Summary(say)
    engine = _engine(spark, pipeline, replica, begun)
    if not may_be_new:
        require_known(engine.lake.small, replica)
    end = time.monotonic() + (pipeline.batch.lease if lease is None else lease)
    engine.finish_redrive()
    while item := engine.retry_once():
        summary.add(item)
        if time.monotonic() >= end:
            break
    waits = engine.waiting()
    return summary.to_dict() | {"waiting": waits.all}


def redrive(
    spark: SparkSession, pipeline: Pipeline, replica: str, say: Say, lease: float | None = None
) -> dict[str, Any]:
    """Send all unjoinable events of this replica round again. Errors: ConfigError for one that has never joined."""
    engine = Engine(spark, pipeline, replica)
    require_known(engine.lake.small, replica)
    sent = engine.redrive()
    say(f"{sent} events sent round again")
    return {"redriven": sent}


def gc(
    spark: SparkSession,
    pipeline: Pipeline,
    replica: str,
    say: Say,
    lease: float | None = None,
    *,
    dry_run: bool = False,
    wait: float = 60.0,
    begun: bool = False,
) -> dict[str, Any]:
    """Collect old claims, rows and history, rewrite buckets of many files, remove files that nobody needs.

    `wait`: seconds for batches under way; `begun`: see _engine. Errors: ClockError; all but the last is done by then.
    """
    from clickjoin.maintain import clean, maintain
    from clickjoin.registry.gc import Collector

    engine, now = _engine(spark, pipeline, replica, begun), clock.careful_now(pipeline.root)
    collector = Collector(pipeline, engine.lake, now, engine.finish, say, patience=wait, dry_run=dry_run)
    done = collector.collect().to_dict()
    if dry_run:
        return done
    kept = maintain(pipeline, engine.lake, now, say)
    kept.removed = clean(pipeline, engine.lake.small, say)  # last: it refuses where clocks disagree
    return done | asdict(kept)


def reshard(
    spark: SparkSession | None,
    pipeline: Pipeline,
    replica: str,
    say: Say,
    lease: float | None = None,
    *,
    shards: int | None = None,
    since: str | None = None,
) -> dict[str, Any]:
    """Spread events from `since` (ISO 8601; default: as soon as is safe) over other shards; without `shards`, look."""
    from clickjoin.agreement.check import require_agreement
    from clickjoin.lake import SmallTables
    from clickjoin.registry.reshard import reshard as change
    from clickjoin.report.shards import shards as shown

    small = SmallTables(pipeline.root)
    if since and shards is None:
        raise ConfigError(f"from {since} on, but over how many shards?", remedy="Give --shards, or leave out --from")
    if shards is not None:
        require_agreement(small, pipeline)
        moment = parse_moment(since) if since else None
        require_lake(pipeline.root)
        now = datetime.fromtimestamp(clock.read(pipeline.root).lake, UTC)
        last = change(small, pipeline, shards, moment, now).entries[-1]
        say(f"events from {last[0]:%Y-%m-%d %H:%M} UTC on are spread over {last[1]} shards")
    return shown(small)


def verify(
    spark: SparkSession,
    pipeline: Pipeline,
    replica: str,
    say: Say,
    lease: float | None = None,
    *,
    since: str | None = None,
    until: str | None = None,
    repair: bool | None = None,
    remove_doubles: bool = False,
) -> dict[str, Any]:
    """Check events from `since` to before `until` (ISO 8601; default: verify.window until now), and fix if told to."""
    from clickjoin.verification.verify import Verifier, Wanted

    require_lake(pipeline.root)
    wanted = Wanted(
        parse_moment(since) if since else None,
        parse_moment(until) if until else None,
        repair=pipeline.verify.repair if repair is None else repair,
        remove_doubles=remove_doubles,
    )
    return Verifier(Engine(spark, pipeline, replica, agreeing=False), say).verify(wanted).to_dict()


def quality(
    spark: SparkSession, pipeline: Pipeline, replica: str, say: Say, lease: Lease = None, *, date: str | None = None
) -> dict[str, Any]:
    """Run the quality suites on a date of event time (YYYY-MM-DD, UTC; default: yesterday)."""
    from clickjoin import quality as suites

    suites.require_store(pipeline.root)
    return suites.run(Engine(spark, pipeline, replica), suites.day_of(date), say).to_dict()


def rebuild(
    spark: SparkSession,
    pipeline: Pipeline,
    replica: str,
    say: Say,
    lease: float | None = None,
    *,
    what: str = "registry",
    replace: bool = False,
) -> dict[str, Any]:
    """Rebuild a lost registry or journal (`what`) from outputs and landed tables, while no join runs."""
    from clickjoin.dispatcher.rebuild import rebuild_journal
    from clickjoin.lake import Lake
    from clickjoin.registry.rebuild import rebuild as rebuild_registry

    lake, now = Lake(spark, pipeline.root), clock.careful_now(pipeline.root)
    if what == "journal":
        return asdict(rebuild_journal(pipeline, lake, now, replace=replace))
    return rebuild_registry(pipeline, lake, now, replace=replace).to_dict()


def _later(name: str) -> Callable[..., dict[str, Any]]:
    """A job; what it needs is loaded when it runs."""

    def run(*args: Any, **arguments: Any) -> dict[str, Any]:
        return function(name)(*args, **arguments)

    return run


APPS: dict[str, Callable[..., dict[str, Any]]] = {name: _later(name) for name in JOBS}


def submit(name: str) -> None:
    """Entry point under spark-submit: `<app>.py PIPELINE.yaml [REPLICA] [LEASE] [ARGUMENTS]`; prints the summary last.

    LEASE in seconds, or empty; ARGUMENTS: a JSON object of what else the app takes.
    """
    from clickjoin.session import submitted

    keep_private()
    pipeline = load(Path(sys.argv[1]))
    replica = sys.argv[2] if len(sys.argv) > 2 else "main"
    lease = float(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3] else None
    arguments = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
    spark = submitted(f"clickjoin {name} {pipeline.pipeline}")
    try:
        result = APPS[name](spark, pipeline, replica, lambda text: print(text, flush=True), lease, **arguments)
    finally:
        spark.stop()
    print(json.dumps(result), flush=True)
