"""The jobs that join: new records, of one pipeline or several, pending events, and unjoinable ones once more."""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.handover import HandOver
from clickjoin.dispatcher.peers import require_known
from clickjoin.engine import Engine
from clickjoin.group.member import Member, Turn
from clickjoin.group.work import work
from clickjoin.lake.requirements import require_lake
from clickjoin.model.batch_plan import COUNTS
from clickjoin.model.errors import ConfigError, SourceError
from clickjoin.model.names import joining_name
from clickjoin.model.reporter import Reporter
from clickjoin.model.split import Problem
from clickjoin.report.summary import Summary
from clickjoin.spark.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickjoin.config import Pipeline, Several
    from clickjoin.spark.lazy import Session


def join(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, lease: float | None = None, *,
    lake_exists: bool = False, hands_over: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run batches of new records for the pipeline's lease (or for `lease` seconds).

    Of a pipeline that has no DAG of retries (`airflow.dags`) what falls due is tried again as well.
    `hands_over`: take the place of the process before, and work until the next one takes this one's place.
    Errors: SourceError, at the end, where a source is missing.
    """
    summary = Summary(report)
    engine = open_engine(spark, pipeline, joining_name(replica), lake_exists=lake_exists)
    seconds, stop = _seconds(pipeline, lease), _never
    if hands_over:
        engine.warm_up()
        turn = HandOver(engine.join, seconds, pipeline.batch.hand_over)
        turn.take_over()
        seconds, stop = turn.seconds, turn.is_over
    dags = pipeline.airflow.dags
    engine.run(
        seconds, retries=dags is not None and "retry" not in dags, done=summary.add, stop=stop, problems=summary.note
    )
    _require_sources(summary.problems)
    return summary.to_dict()


def join_group(
    spark: Session, several: Several, replica: str, report: Reporter, lease: float | None = None, *,
    known: str | None = None, hands_over: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Join new records and try again what is due, of several pipelines, for the longest of their leases, or `lease`.

    A pipeline that fails for good leaves the others alone; the summary names it, and is not `ok`. `known`: pipelines
    that have worked before, by name: a lake of theirs without tables is an error. `hands_over`: see `join`, for each.
    Errors: ServerLost.
    """
    one_at_a_time = Lock()

    def said(text: str) -> None:
        with one_at_a_time:
            report(text)

    for path, problem in several.broken.items():
        report(f"{path}: cannot be read, so that it is not joined: {problem}")
    longest = max((pipeline.batch.lease for pipeline in several.good), default=0.0)
    turn = Turn(replica, longest if lease is None else lease, hands_over)
    before = set((known or "").split())
    shared = lazy(spark)
    members = [
        Member(shared, pipeline, turn, said, lake_exists=pipeline.pipeline in before) for pipeline in several.good
    ]
    work(members)
    return _summary(members, several.broken, before)


def retry(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, lease: float | None = None, *,
    may_be_new: bool = False, lake_exists: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Try the pending events that are due, until none is or the lease is over.

    Errors: ConfigError for a replica that has never joined, unless it `may_be_new`, as one that a scheduler starts; and
    for a pipeline of one stream.
    """
    _require_partners(pipeline)
    summary = Summary(report)
    engine = open_engine(spark, pipeline, replica, lake_exists=lake_exists)
    if not may_be_new:
        require_known(engine.lake.delta, replica)
    end = time.monotonic() + _seconds(pipeline, lease)
    engine.finish_redrive()
    while item := engine.retry_once():
        summary.add(item)
        if time.monotonic() >= end:
            break
    return summary.to_dict() | {"waiting": engine.waiting().all}


def redrive(spark: Session, pipeline: Pipeline, replica: str, report: Reporter) -> dict[str, Any]:
    """Send all unjoinable events of this replica again.

    Errors: ConfigError for one that has never joined, and for a pipeline of one stream.
    """
    _require_partners(pipeline)
    engine = Engine(spark, pipeline, replica)
    require_known(engine.lake.delta, replica)
    sent = engine.redrive()
    report(f"{sent} events sent again")
    return {"redriven": sent}


def open_engine(spark: Session, pipeline: Pipeline, replica: str, *, lake_exists: bool) -> Engine:
    """An engine. Errors: LakeError for a lake without tables where `lake_exists`: it is not mounted, or was moved."""
    if lake_exists:
        require_lake(pipeline.root)
    return Engine(spark, pipeline, replica)


def _never() -> bool:
    return False


def _require_partners(pipeline: Pipeline) -> None:
    if pipeline.stream:
        raise ConfigError(
            f"pipeline {pipeline.pipeline} is of one stream, whose events wait for nothing: none is tried again",
            remedy="Run `clickjoin run` or `drain`: what they read is published at once",
        )


def _seconds(pipeline: Pipeline, lease: float | None) -> float:
    return pipeline.batch.lease if lease is None else lease


def _require_sources(problems: Sequence[Problem]) -> None:
    """Fail where a source is missing: all else has been done by then, and someone has to hear of it."""
    for problem in problems:
        if problem.kind == "missing":
            detail = problem.detail
            raise SourceError(
                detail if problem.path in detail else f"{problem.path}: {detail}",
                remedy="Mount the folder or create the topic, or fix source in the pipeline's file",
            )


def _summary(members: list[Member], broken: Mapping[str, str], before: set[str]) -> dict[str, Any]:
    """Sums over all, what each did, and why some did not.

    `known`: pipelines that have worked by now, for the next task.
    """
    each = {member.pipeline.pipeline: member.to_dict() for member in members}
    failed = dict(broken) | {member.pipeline.pipeline: member.failed for member in members if member.failed}
    for name, found in each.items():
        missing = [problem for problem in found["problems"] if problem["kind"] == "missing"]
        if missing and name not in failed:
            failed[name] = "; ".join(f"{problem['path']}: {problem['detail']}" for problem in missing)
    opened = {member.pipeline.pipeline for member in members if member.opened}
    return {
        **{name: sum(found[name] for found in each.values()) for name in ("batches", *COUNTS, "backlog_events")},
        "lag_seconds": max((found["lag_seconds"] for found in each.values()), default=0.0),
        "pipelines": each,
        "failed": failed,
        "known": sorted(before | opened),
        "ok": not failed,
        "verdict": "\n".join(f"{name}: {reason}" for name, reason in failed.items()),
    }
