"""The jobs about dates that a scheduler runs; in the form of clickjoin.apps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clickjoin import quality
from clickjoin.dates import backfill as backfills
from clickjoin.dates.changes import changed
from clickjoin.dates.closing import Order, close
from clickjoin.dates.day import Day, days
from clickjoin.dates.outline import outline
from clickjoin.engine import Engine
from clickjoin.errors import ConfigError
from clickjoin.known import require_lake
from clickjoin.lake import SmallTables
from clickjoin.lake.clock import careful_now
from clickjoin.report.status import batch_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clickjoin.config import Pipeline

Say = Callable[[str], None]
ACTIONS = ("close", "fill", "rebuild")


def close_day(
    spark: SparkSession,
    pipeline: Pipeline,
    replica: str,
    say: Say,
    lease: float | None = None,
    *,
    date: str | None = None,
    action: str | None = None,
    run: str | None = None,
    forced: str | None = None,
    repair: bool | None = None,
) -> dict[str, Any]:
    """Work through one date (default: yesterday, UTC) and close it if it is complete. See closing.close."""
    order, day = _order(action or "close", run or "", forced or "", repair), Day(quality.day_of(date))
    return close(_engine(spark, pipeline, replica), day, order, say)


def backfill(
    spark: SparkSession,
    pipeline: Pipeline,
    replica: str,
    say: Say,
    lease: float | None = None,
    *,
    since: str = "",
    until: str = "",
    mode: str = "fill",
    primary: str | None = None,
    foreign: str | None = None,
    dry_run: bool = False,
    jobs: int = 1,
    run: str | None = None,
) -> dict[str, Any]:
    """Fill or rebuild the dates from `since` to `until`, raw logs first where globs are given."""
    wanted = days(since, until or since, datetime.now(UTC))
    _require_mode(mode)
    logs = _logs(pipeline, primary, foreign)
    engine = _engine(spark, pipeline, replica)
    name = run or f"backfill-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    order = _order(mode, name, "", None)
    if dry_run:
        if logs:
            say(f"raw logs are looked at only when they are landed: {logs.primary} {logs.foreign}")
        return {"ok": True, "dry_run": [outline(engine, day, order) for day in wanted]}
    landed = _landed(engine, logs, say)
    say(f"run {name}: {len(wanted)} dates, {mode}; cut short, it goes on with --run {name}")
    done = backfills.backfill(engine, wanted, order, jobs, say)
    failing = [row["verdict"] for row in done["dates"] if not row["ok"]] + [
        f"{day}: {error}" for day, error in done["errors"].items()
    ]
    verdict = f"faults left: {'; '.join(failing)}" if failing else f"{len(wanted)} dates are closed"
    return {"ok": not failing, "verdict": verdict, "run": name, "landed": landed} | done


def days_of(
    spark: SparkSession,
    pipeline: Pipeline,
    replica: str,
    say: Say,
    lease: float | None = None,
    *,
    since: str = "",
    until: str = "",
    mode: str = "fill",
    primary: str | None = None,
    foreign: str | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """The part of a backfill before its dates: checks the range, lands raw logs, and names the dates as `days`.

    A dry run says what would be done to each, and names none.
    """
    if dry_run:
        more = {"since": since, "until": until, "mode": mode, "primary": primary, "foreign": foreign}
        done = backfill(spark, pipeline, replica, say, dry_run=True, **more)  # type: ignore[arg-type]
        for outline in done["dry_run"]:
            say(", ".join(f"{name} {value}" for name, value in outline.items()))
        return done | {"days": []}
    wanted = days(since, until or since, datetime.now(UTC))
    _require_mode(mode)
    logs = _logs(pipeline, primary, foreign)
    return {"days": [str(day) for day in wanted], "landed": _landed(_engine(spark, pipeline, replica), logs, say)}


def late(
    spark: SparkSession | None, pipeline: Pipeline, replica: str, say: Say, lease: float | None = None
) -> dict[str, Any]:
    """Closed dates whose output has changed since, as `days`. No Spark."""
    found = changed(pipeline, SmallTables(pipeline.root), careful_now(pipeline.root))
    say(f"changed since they were closed: {', '.join(found) or 'none'}")
    return {"days": found}


def _engine(spark: SparkSession, pipeline: Pipeline, replica: str) -> Engine:
    """An engine on a lake that is there, with a quality store that is sound: said before anything is begun."""
    require_lake(pipeline.root)
    quality.require_store(pipeline.root)
    return Engine(spark, pipeline, replica)


def _logs(pipeline: Pipeline, primary: str | None, foreign: str | None) -> backfills.RawLogs:
    """Raw logs, if they may be read: said before anything is begun. Errors: ConfigError."""
    logs = backfills.RawLogs(str(primary or ""), str(foreign or ""))
    logs.require(pipeline)
    return logs


def _landed(engine: Engine, logs: backfills.RawLogs, say: Say) -> int:
    return backfills.land(engine, logs, lambda done: say(batch_text(done.metrics, ""))) if logs else 0


def _require_mode(mode: str) -> None:
    if mode not in ACTIONS[1:]:
        raise ConfigError(f"{mode!r} is no mode of a backfill", remedy=f"Write {' or '.join(ACTIONS[1:])}")


def _order(action: str, run: str, forced: str, repair: bool | None) -> Order:
    if action not in ACTIONS:
        raise ConfigError(f"{action!r} is nothing to do to a date", remedy=f"Write one of {', '.join(ACTIONS)}")
    return Order(action, run, forced, repair)  # type: ignore[arg-type]
