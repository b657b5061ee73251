"""Housekeeping of the tables of per-key processing: old batches go, small files become few, files nobody needs go."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import JournalReader
from clickjoin.engines.choose import open_own_tables
from clickjoin.engines.tables_port import Tables
from clickjoin.gc.compaction import FEWEST_IN_TABLE, skew_bound
from clickjoin.gc.journal_retention import trim
from clickjoin.lake import clock
from clickjoin.lake.vacuum import Needed, clean_log, vacuum
from clickjoin.model.reporter import Reporter
from clickjoin.processing.planning import REPLICA, SEQUENCE
from clickjoin.processing.tables import folder
from clickjoin.schemas.process import PROCESS

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_APPENDED = ("signals", "late", "processed")  # of `state` all keys are written again by the batches themselves


def collect_processed(pipeline: Pipeline, now: datetime, report_line: Reporter) -> dict[str, int]:
    """Do it, beside batches; returns data files removed by table. Errors: ClockError, as of compaction.clean."""
    tables = open_own_tables(pipeline, folder(pipeline), {table.name: table for table in PROCESS})
    there = [table.name for table in PROCESS if tables.exists(table.name)]
    if len(there) < len(PROCESS):
        return {}  # nothing was processed yet
    kept = pipeline.retention
    trim(tables, "journal", "at", now - timedelta(seconds=kept.journal), dry_run=False)
    tables.drop_before("processed", "settled_at", now - timedelta(seconds=kept.metrics))
    for name in _APPENDED:
        if files := tables.compact(name, FEWEST_IN_TABLE):
            report_line(f"process/{name}: {files} files rewritten")
    return _cleaned(pipeline, tables, there)


def _cleaned(pipeline: Pipeline, tables: Tables, there: list[str]) -> dict[str, int]:
    reading = clock.read(pipeline.root)
    reading.require(skew_bound(pipeline))
    # Before any table is read: what a batch has written that is not settled may be committed yet.
    open_ = JournalReader(tables, pipeline.pipeline, REPLICA, SEQUENCE).load().unsettled
    written = open_.planned_at.timestamp() - skew_bound(pipeline) if open_ else float("inf")
    needed = Needed(reading.sure - pipeline.retention.files, (), written)
    removed = {}
    for name in there:
        removed[f"process/{name}"] = len(vacuum(tables, name, needed))
        clean_log(tables, name, reading.sure, needed)
    return removed
