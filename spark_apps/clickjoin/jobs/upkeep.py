"""The jobs that keep a lake: collecting, resharding, rebuilding what is lost, erasing a person's events."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clickjoin.agreement.check import require_agreement
from clickjoin.engine import Engine
from clickjoin.engines.choose import open_lake, open_tables
from clickjoin.erasure.forget import Erasure
from clickjoin.erasure.wanted import parse
from clickjoin.gc.collector import Collector
from clickjoin.gc.compaction import clean, maintain
from clickjoin.gc.processed import collect_processed
from clickjoin.jobs.joining import open_engine
from clickjoin.lake import clock
from clickjoin.lake.requirements import require_lake
from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import MICROS
from clickjoin.model.reporter import Reporter
from clickjoin.model.span import parse_moment
from clickjoin.rebuild.journal import rebuild_journal
from clickjoin.rebuild.registry import rebuild as rebuild_registry
from clickjoin.registry.reshard import reshard as add_entry
from clickjoin.report.registry import shards as shards_report

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.spark.lazy import Session


def gc(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, *,
    dry_run: bool = False, wait: float = 60.0, lake_exists: bool = False,
) -> dict[str, Any]:  # fmt: skip
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


def reshard(
    spark: None, pipeline: Pipeline, replica: str, report: Reporter, *,
    shards: int | None = None, since: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Spread events from `since` (ISO 8601; default: as soon as is safe) over other shards; without `shards`, look."""
    delta = open_tables(pipeline)
    if since and shards is None:
        raise ConfigError(f"from {since} on, but over how many shards?", remedy="Give --shards, or leave out --from")
    if shards is not None:
        require_agreement(delta, pipeline)
        moment = parse_moment(since) if since else None
        require_lake(pipeline.root)
        now = datetime.fromtimestamp(clock.read(pipeline.root).lake, UTC)
        last = add_entry(delta, pipeline, shards, moment, now).entries[-1]
        report(f"events from {last[0]:%Y-%m-%d %H:%M} UTC on are spread over {last[1]} shards")
    return shards_report(delta)


def rebuild(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, *,
    what: str = "registry", replace: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Rebuild a lost registry or journal (`what`) from outputs and landed tables, while no join runs."""
    lake, now = open_lake(spark, pipeline), clock.careful_now(pipeline.root)
    if what == "journal":
        return asdict(rebuild_journal(pipeline, lake, now, replace=replace))
    return rebuild_registry(pipeline, lake, now, replace=replace).to_dict()


def forget(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, *,
    where: str | None = None, ids: str | None = None, request: str | None = None, apply: bool = False,
    wait: float = 60.0,
) -> dict[str, Any]:  # fmt: skip
    """Say which events are meant and what holds their records, or, with `apply`, take the records out of all tables.

    `where`: conditions, one a line; `ids`: file of ids. Neither: all that was ever forgotten, once more.
    """
    wanted = parse((where or "").splitlines(), ids)
    require_lake(pipeline.root)
    engine = Engine(spark, pipeline, replica)
    name = request or f"{replica}/{int(engine.clock() * MICROS)}"
    erasure = Erasure(engine, wanted, name, report, wait)
    return erasure.apply() if apply else erasure.look()
