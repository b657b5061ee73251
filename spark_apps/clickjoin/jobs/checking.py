"""The jobs that check: verification, quality."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin import quality as suites
from clickjoin.dispatcher.journal import JournalReader
from clickjoin.dispatcher.peers import who_joins
from clickjoin.engine import Engine
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.readable import UnreadableLog
from clickjoin.lake.requirements import has_tables, require_lake
from clickjoin.model.errors import LakeError
from clickjoin.model.reporter import Reporter
from clickjoin.model.span import parse_moment
from clickjoin.processing.check import check as check_sums
from clickjoin.processing.tables import folder
from clickjoin.report.accounts import account, is_small, kept_since
from clickjoin.report.status import replicas
from clickjoin.verification.verify import Verifier, Wanted

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.spark.lazy import Session


def verify(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, *,
    since: str | None = None, until: str | None = None, repair: bool | None = None, remove_doubles: bool = False,
    lake_exists: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Check events from `since` to before `until` (ISO 8601; default: as Wanted says); repair where asked.

    Errors: LakeError for a lake without tables, unless it may be that nothing has joined yet.
    """
    if not lake_exists and not has_tables(pipeline.root):
        return {"ok": True, "verdict": f"{pipeline.root}: no tables yet, so nothing to verify"}
    require_lake(pipeline.root)
    wanted = Wanted(
        parse_moment(since) if since else None,
        parse_moment(until) if until else None,
        repair=pipeline.verify.repair if repair is None else repair,
        remove_doubles=remove_doubles,
    )
    engine = Engine(spark, pipeline, replica, agreeing=False)
    if wanted.repair and (other := _who_joins(engine, pipeline, replica)) != replica:
        report(f"replica {replica} has never planned a batch: what is dispatched again waits at replica {other}")
        engine = Engine(spark, pipeline, other, agreeing=False)
    found = Verifier(engine, report, oldest_wrong=lambda: _oldest_wrong(engine, bool(repair))).verify(wanted).to_dict()
    return found | _of_processing(pipeline, found, report)


def _who_joins(engine: Engine, pipeline: Pipeline, replica: str) -> str:
    """Who is to join what a repair dispatches again: at a replica that nobody runs it would never be joined."""
    try:
        recovery = JournalReader(engine.lake.delta, pipeline.pipeline, replica, "recover")
        if recovery.planned() > recovery.settled():  # one that was cut short, to be finished first
            return replica
        return who_joins(engine.lake.delta, pipeline.pipeline, replica)
    except (LakeError, UnreadableLog, OSError, pa.ArrowException):  # a journal that cannot be read is repaired first
        return replica


def _oldest_wrong(engine: Engine, asked: bool) -> datetime | None:
    """The time of the oldest event for which the sums do not agree.

    Of a lake that this process cannot count by itself only where a repair was `asked` for: that takes Spark a while.
    """
    lake, pipeline = engine.lake, engine.pipeline
    if not (asked or is_small(lake.delta)):
        return None
    since = kept_since(pipeline, lake, datetime.fromtimestamp(engine.clock(), UTC))
    return account(lake, replicas(lake.delta), since, pipeline.repeats).wrong_from


def _of_processing(pipeline: Pipeline, found: dict[str, Any], report: Reporter) -> dict[str, Any]:
    """What a verification says with the sums of per-key processing, where there is any."""
    if pipeline.process is None or not DeltaReader(folder(pipeline)).exists("state"):
        return {}
    sums = check_sums(pipeline)
    for fault in sums.faults:
        report(f"processing: {fault}")
    said = f"; processing: {'; '.join(sums.faults) or f'each of {sums.events:,} events was counted once'}"
    notes = [*found["notes"], *(f"processing: {note}" for note in sums.notes)]
    return {"ok": found["ok"] and not sums.faults, "verdict": found["verdict"] + said, "notes": notes}


def quality(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, *, date: str | None = None
) -> dict[str, Any]:
    """Run the quality suites on a date of event time (YYYY-MM-DD, UTC; default: yesterday)."""
    suites.require_store(pipeline.root)
    return suites.run(Engine(spark, pipeline, replica), suites.day_of(date), report).to_dict()
