"""The job that collects: old claims, rows and history, small files, and files that no version needs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clickjoin.gc.collector import Collector
from clickjoin.gc.compaction import clean, maintain
from clickjoin.gc.processed import collect_processed
from clickjoin.jobs.opening import open_engine
from clickjoin.lake import clock
from clickjoin.model.reporter import Reporter

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.spark.lazy import Session


def gc(
    spark: Session,
    pipeline: Pipeline,
    replica: str,
    report: Reporter,
    *,
    dry_run: bool = False,
    wait: float = 60.0,
    lake_exists: bool = False,
) -> dict[str, Any]:
    """Collect old claims, rows and history, compact small files, remove unreferenced ones.

    `wait`: seconds for batches under way. Errors: ClockError; all but the last is done by then.
    """
    engine = open_engine(spark, pipeline, replica, lake_exists=lake_exists)
    now = clock.careful_now(pipeline.root)
    collector = Collector(pipeline, engine.lake, now, engine.finish, report, patience=wait, dry_run=dry_run)
    collected = collector.collect().to_dict()
    if dry_run:
        return collected
    kept = maintain(pipeline, engine.lake, now, report)
    kept.removed = clean(pipeline, engine.lake.delta, report)  # late: it refuses where clocks disagree
    if pipeline.process:
        kept.removed |= collect_processed(pipeline, now, report)
    return collected | asdict(kept)
