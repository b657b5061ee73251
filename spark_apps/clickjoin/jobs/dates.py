"""The jobs about dates: closing one, filling or rebuilding some, finding those that have changed since."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast, get_args

from clickjoin import quality
from clickjoin.dates import backfill as backfills
from clickjoin.dates.backfill import outline
from clickjoin.dates.closing import Action, Order, close
from clickjoin.dates.ledger import changed
from clickjoin.engine import Engine
from clickjoin.engines.choose import open_tables
from clickjoin.lake.clock import careful_now
from clickjoin.lake.requirements import require_lake
from clickjoin.model.errors import ConfigError
from clickjoin.model.reporter import Reporter
from clickjoin.model.span import Day, days
from clickjoin.report.status import batch_text

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.spark.lazy import Session

_ACTIONS = get_args(Action)
_MODES = ("fill", "rebuild")


def close_day(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, *,
    date: str | None = None, action: str = "close", run: str | None = None, forced: str | None = None,
    repair: bool | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Work through one date (default: yesterday, UTC) and close it if it is complete. See closing.close."""
    order, day = _order(action, run or "", forced or "", repair), Day(quality.day_of(date))
    return close(_engine(spark, pipeline, replica), day, order, report)


def backfill(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, *,
    since: str, until: str | None = None, mode: str = "fill", primary: str | None = None, foreign: str | None = None,
    dry_run: bool = False, jobs: int = 1, run: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Fill or rebuild the dates from `since` to `until`, raw logs first where globs are given; `jobs` at a time."""
    chosen, logs = _planned(pipeline, since, until, mode, primary, foreign)
    engine = _engine(spark, pipeline, replica)
    order = _order(mode, run or f"backfill-{datetime.now(UTC):%Y%m%dT%H%M%S}", "", None)
    if dry_run:
        return _outlines(engine, chosen, order, logs, report)
    landed = _land(engine, logs, report)
    report(f"run {order.run}: {len(chosen)} dates, {mode}; cut short, it goes on with --run {order.run}")
    result = backfills.backfill(engine, chosen, order, jobs, report)
    return {**_verdict(result, len(chosen)), "run": order.run, "landed": landed} | result


def plan_backfill(
    spark: Session, pipeline: Pipeline, replica: str, report: Reporter, *,
    since: str, until: str | None = None, mode: str = "fill", primary: str | None = None, foreign: str | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """The part of a backfill before its dates: checks the range, lands raw logs, and names the dates as `days`.

    A dry run says what would be done to each (`dry_run`), and names none.
    """
    chosen, logs = _planned(pipeline, since, until, mode, primary, foreign)
    engine = _engine(spark, pipeline, replica)
    if dry_run:
        return _outlines(engine, chosen, _order(mode, "", "", None), logs, report) | {"days": []}
    return {"days": [str(day) for day in chosen], "landed": _land(engine, logs, report)}


def reclose_changed(spark: None, pipeline: Pipeline, replica: str, report: Reporter) -> dict[str, Any]:
    """Closed dates whose output has changed since, as `days`: they are to be closed again. No Spark."""
    found = changed(pipeline, open_tables(pipeline), careful_now(pipeline.root))
    report(f"changed since they were closed: {', '.join(found) or 'none'}")
    return {"days": found}


def _engine(spark: Session, pipeline: Pipeline, replica: str) -> Engine:
    """An engine on a lake that is there, with a quality store that is sound. Errors, before any work: LakeError."""
    require_lake(pipeline.root)
    quality.require_store(pipeline.root)
    return Engine(spark, pipeline, replica)


def _planned(
    pipeline: Pipeline, since: str, until: str | None, mode: str, primary: str | None, foreign: str | None
) -> tuple[Sequence[Day], backfills.RawLogs]:
    """The dates, and raw logs that may be read. Errors, before any work: ConfigError."""
    chosen = days(since, until or since, datetime.now(UTC))
    if mode not in _MODES:
        raise ConfigError(f"{mode!r} is no mode of a backfill", remedy=f"Write {' or '.join(_MODES)}")
    logs = backfills.RawLogs(primary or "", foreign or "")
    logs.require(pipeline)
    return chosen, logs


def _land(engine: Engine, logs: backfills.RawLogs, report: Reporter) -> int:
    return backfills.land(engine, logs, lambda settled: report(batch_text(settled.metrics, ""))) if logs else 0


def _outlines(
    engine: Engine, chosen: Sequence[Day], order: Order, logs: backfills.RawLogs, report: Reporter
) -> dict[str, Any]:
    if logs:
        report(f"raw logs are looked at only when they are landed: {logs.primary} {logs.foreign}")
    return {"ok": True, "dry_run": [outline(engine, day, order) for day in chosen]}


def _verdict(result: dict[str, Any], dates: int) -> dict[str, Any]:
    """In a line: which dates are not closed. Why stands with each of them, and was reported as it was worked on."""
    left = [f"{row['date']} is {row['state']}" for row in result["dates"] if row["state"] != "closed"]
    left += [f"{day} has failed" for day in result["errors"]]
    said = f"{len(left)} of {dates} dates are not closed: {', '.join(left)}"
    return {
        "ok": all(row["ok"] for row in result["dates"]) and not result["errors"],
        "verdict": said if left else "1 date is closed" if dates == 1 else f"{dates} dates are closed",
    }


def _order(action: str, run: str, forced: str, repair: bool | None) -> Order:
    if action not in _ACTIONS:
        raise ConfigError(f"{action!r} is nothing to do to a date", remedy=f"Write one of {', '.join(_ACTIONS)}")
    return Order(cast("Action", action), run, forced, repair)
