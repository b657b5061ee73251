"""Commands that check: verify, quality."""

from __future__ import annotations

from typing import Annotated

import typer

from clickjoin.cli import console
from clickjoin.cli.base import Config, Json, Master, Replica, SparkConnect, app, run_job
from clickjoin.config import load
from clickjoin.model.span import parse_date


@app.command()
def verify(
    config: Config,
    replica: Replica = "main",
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
    since: Annotated[
        str | None,
        typer.Option("--from", help="first event time, such as 2026-03-01T12:00Z; default: verify.window ago"),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--to", help="event time to end before; default: now and limits.max_skew, by which events may be ahead"
        ),
    ] = None,
    repair: Annotated[bool | None, typer.Option(help="fix what can be fixed; default: verify.repair")] = None,
    remove_doubles: Annotated[
        bool, typer.Option("--remove-doubles", help="with --repair: move rows too many out of the output")
    ] = False,
) -> None:
    """Prove what is promised, id by id and byte by byte, while joins run; exit code 1 if a fault is left."""
    pipeline = load(config)
    result = run_job(
        "verify",
        pipeline,
        replica,
        spark=(spark_connect, master),
        as_json=as_json,
        since=since,
        until=until,
        repair=repair,
        remove_doubles=remove_doubles,
    )
    console.verified(result, as_json)
    raise typer.Exit(0 if result["ok"] else 1)


@app.command()
def quality(
    config: Config,
    replica: Replica = "main",
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
    date: Annotated[str | None, typer.Option(help="date of event time, UTC; default: yesterday")] = None,
) -> None:
    """Check what a date's data is like: nulls, repeats, volumes, delays; exit code 1 if a check that counts is red."""
    pipeline = load(config)
    if date:
        parse_date(date)  # said before Spark takes its time to start
    result = run_job("quality", pipeline, replica, spark=(spark_connect, master), as_json=as_json, date=date)
    console.graded(result, as_json)
    raise typer.Exit(0 if result["ok"] else 1)
