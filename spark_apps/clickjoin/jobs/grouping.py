"""The job that joins several pipelines in one process."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from clickjoin.group.member import Member, Turn
from clickjoin.group.work import work
from clickjoin.model.batch_plan import COUNTS
from clickjoin.model.reporter import Reporter
from clickjoin.spark.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickjoin.config import Several
    from clickjoin.spark.lazy import Session


def join_group(
    spark: Session,
    several: Several,
    replica: str,
    report: Reporter,
    lease: float | None = None,
    *,
    known: str | None = None,
    hands_over: bool = False,
) -> dict[str, Any]:
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
