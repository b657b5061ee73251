"""What commands that run jobs see to before Spark takes its time to start, and what they add to a summary."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clickjoin.cli import console
from clickjoin.cli.base import load, small_tables, writable
from clickjoin.model.errors import ConfigError, DateError
from clickjoin.model.span import parse_date

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_LOOK_SECONDS = 10.0


def quality(config: Path, given: dict[str, Any]) -> Pipeline:
    """The date is one."""
    pipeline = load(config)
    if given["date"]:
        parse_date(given["date"])
    return pipeline


def close(config: Path, given: dict[str, Any]) -> Pipeline:
    """The date has begun, and is complete, waited for, or closed for a reason. Errors: DateError; else exit code 1."""
    from clickjoin.dates.readiness import by_hand, readiness, require_ready
    from clickjoin.model.span import parse

    pipeline, day = writable(config), parse(given["date"])
    wait = given.pop("wait")
    while wait and not (found := readiness(pipeline, day))["ready"] and not found["late"]:
        with console.waiting(f"{day}: {found['why']}"):
            time.sleep(_LOOK_SECONDS)
    if day.low > datetime.now(UTC):
        raise DateError(f"{day} lies in the future", remedy="Wait until it has begun")
    if not given["forced"]:
        try:
            require_ready(pipeline, day)
        except DateError as error:
            console.report_line(f"clickjoin: {error}")
            raise typer.Exit(1) from error
    given["forced"] = by_hand(given["forced"]) if given["forced"] else ""
    return pipeline


def backfill(config: Path, given: dict[str, Any]) -> Pipeline:
    """There are such dates, logs and such a run."""
    from clickjoin.dates import ledger
    from clickjoin.dates.backfill import RawLogs
    from clickjoin.model.span import days

    days(given["since"], given["until"] or given["since"], datetime.now(UTC))
    pipeline = load(config) if given["dry_run"] else writable(config)
    RawLogs(given["primary"] or "", given["foreign"] or "").require(pipeline)
    if given["run"]:
        ledger.require_run(small_tables(pipeline), given["run"])
    return pipeline


def downstream(config: Path, given: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """A backfill's summary, with what a rebuilding changes for pipelines whose files lie beside this one's."""
    from clickjoin.chain.links import beside
    from clickjoin.model.span import Span, parse
    from clickjoin.report import chain

    if given["mode"] != "rebuild":
        return found
    span = Span(parse(given["since"]).low, parse(given["until"] or given["since"]).high)
    return found | {"downstream": chain.downstream(beside(config), span)}


def forget(config: Path, given: dict[str, Any]) -> Pipeline:
    """What is meant can be read; with --list, what was ever forgotten is all that is asked for."""
    from clickjoin.erasure.wanted import parse
    from clickjoin.forgotten.known import forgotten

    if given.pop("list"):
        known = forgotten(small_tables(load(config)))
        for name in sorted({key for keys in known.keys.values() for key, _ in keys}):
            typer.echo(name)
        raise typer.Exit
    where = given["where"] or ()
    parse(where, given["ids"])
    if any("\n" in one for one in where):
        raise ConfigError("--where: a value with a line end", remedy="Name the events with --ids")
    return writable(config)
