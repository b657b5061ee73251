"""The jobs about the registry's layout and loss: resharding, rebuilding."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clickjoin.agreement.check import require_agreement
from clickjoin.engines.choose import open_lake, open_tables
from clickjoin.lake import clock
from clickjoin.lake.requirements import require_lake
from clickjoin.model.errors import ConfigError
from clickjoin.model.reporter import Reporter
from clickjoin.model.span import parse_moment
from clickjoin.rebuild.journal import rebuild_journal
from clickjoin.rebuild.registry import rebuild as rebuild_registry
from clickjoin.registry.reshard import reshard as add_entry
from clickjoin.report.registry import shards as shards_report

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.spark.lazy import Session


def reshard(
    spark: None,
    pipeline: Pipeline,
    replica: str,
    report: Reporter,
    *,
    shards: int | None = None,
    since: str | None = None,
) -> dict[str, Any]:
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
    spark: Session,
    pipeline: Pipeline,
    replica: str,
    report: Reporter,
    *,
    what: str = "registry",
    replace: bool = False,
) -> dict[str, Any]:
    """Rebuild a lost registry or journal (`what`) from outputs and landed tables, while no join runs."""
    lake, now = open_lake(spark, pipeline), clock.careful_now(pipeline.root)
    if what == "journal":
        return asdict(rebuild_journal(pipeline, lake, now, replace=replace))
    return rebuild_registry(pipeline, lake, now, replace=replace).to_dict()
