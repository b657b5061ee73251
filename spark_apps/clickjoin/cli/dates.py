"""Commands about dates: close, backfill, dates."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from clickjoin.cli import console, console_dates
from clickjoin.cli.base import Config, Json, Master, Replica, SparkConnect, app, run_job, small_tables, writable
from clickjoin.config import load
from clickjoin.model.errors import DateError

_LOOK_SECONDS = 10.0


@app.command(name="close")
def close_date(
    date: Annotated[str, typer.Argument(help="date of event time, UTC, such as 2026-03-01")],
    config: Config,
    replica: Replica = "main",
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
    wait: Annotated[bool, typer.Option("--wait", help="wait until it is complete, close.wait at most")] = False,
    force: Annotated[bool, typer.Option("--force", help="close it although something is missing")] = False,
) -> None:
    """Close a date: join what is missing, verify it, judge its quality, say so in table `dates`; else exit code 1."""
    from clickjoin.dates.readiness import readiness, require_ready
    from clickjoin.model.span import parse

    pipeline, day = writable(config), parse(date)
    while wait and not (found := readiness(pipeline, day))["ready"] and not found["late"]:
        with console.waiting(f"{day}: {found['why']}"):
            time.sleep(_LOOK_SECONDS)
    if day.low > datetime.now(UTC):
        raise DateError(f"{day} lies in the future", remedy="Wait until it has begun")
    if not force:
        try:
            require_ready(pipeline, day)
        except DateError as error:
            console.report_line(f"clickjoin: {error}")
            raise typer.Exit(1) from error
    forced = "closed by hand" if force else ""
    done = run_job(
        "close_day",
        pipeline,
        replica,
        spark=(spark_connect, master),
        as_json=as_json,
        date=date,
        forced=forced,
    )
    console_dates.closed([done], as_json, details=False)
    raise typer.Exit(0 if done["ok"] else 1)


@app.command()
def backfill(
    config: Config,
    since: Annotated[str, typer.Option("--from", help="first date, such as 2026-03-01")],
    until: Annotated[str, typer.Option("--to", help="last date; default: the first")] = "",
    mode: Annotated[str, typer.Option(help="fill: join what is missing; rebuild: run the adapter again")] = "fill",
    primary: Annotated[str, typer.Option(help="glob of raw logs of queries, below backfill.roots")] = "",
    foreign: Annotated[str, typer.Option(help="glob of raw logs of clicks, below backfill.roots")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be done to each date")] = False,
    jobs: Annotated[int, typer.Option(min=1, max=16, help="dates at a time")] = 1,
    run: Annotated[str, typer.Option(help="go on with this run: the dates that it has closed are passed over")] = "",
    replica: Replica = "main",
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
) -> None:
    """Fill or rebuild the output of some dates, beside joins that run; exit code 1 if one is not closed afterwards."""
    from clickjoin.dates import ledger
    from clickjoin.dates.backfill import RawLogs
    from clickjoin.model.span import days

    days(since, until or since, datetime.now(UTC))  # said before Spark takes its time to start
    pipeline = load(config) if dry_run else writable(config)
    RawLogs(primary, foreign).require(pipeline)
    if run:
        ledger.require_run(small_tables(pipeline), run)
    done = run_job(
        "backfill",
        pipeline,
        replica,
        spark=(spark_connect, master),
        as_json=as_json,
        since=since,
        until=until,
        mode=mode,
        primary=primary,
        foreign=foreign,
        dry_run=dry_run,
        jobs=jobs,
        run=run,
    )
    if mode == "rebuild":
        done["downstream"] = _downstream(config, since, until or since)
    console_dates.backfilled(done, as_json)
    raise typer.Exit(0 if done["ok"] else 1)


def _downstream(config: Path, since: str, until: str) -> list[dict[str, Any]]:
    """What it changes for pipelines whose files lie beside this one's."""
    from clickjoin.chain.links import beside
    from clickjoin.model.span import Span, parse
    from clickjoin.report.chain import downstream

    return downstream(beside(config), Span(parse(since).low, parse(until).high))


@app.command()
def dates(config: Config, as_json: Json = False) -> None:
    """Show the state of every date that was ever closed or worked on. No Spark."""
    from clickjoin.dates import ledger

    rows = ledger.newest(small_tables(load(config)))
    console_dates.closed([rows[date] for date in sorted(rows)], as_json)
