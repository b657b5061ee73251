"""Commands that join, and that process what was joined: run, drain, retry, redrive, process, signals."""

from __future__ import annotations

from typing import Annotated

import typer

from clickjoin.cli import console, console_listing, console_runs
from clickjoin.cli.base import Config, Joining, Json, Master, Replica, SparkConnect, app, connected, run_job, writable
from clickjoin.config import load


@app.command()
def run(
    config: Config,
    replica: Joining = "main",
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
    lease: Annotated[float | None, typer.Option(min=0, help="stop after this many seconds; default: never")] = None,
) -> None:
    """Join new events, and retry pending ones, until stopped."""
    from clickjoin.jobs.run import forever

    pipeline = writable(config)
    summary = forever(
        connected((spark_connect, master), pipeline), pipeline, replica, console.batch_line(as_json), lease
    )
    console_runs.summary(summary, as_json)


@app.command()
def drain(
    config: Config,
    replica: Joining = "main",
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
    check: Annotated[bool, typer.Option(help="count every id at the end; exit code 1 unless the sums agree")] = True,
) -> None:
    """Join all that the sources hold, try what is due until nothing is, then say whether the sums agree."""
    from clickjoin.jobs.run import drained

    pipeline = writable(config)
    result = drained(
        connected((spark_connect, master), pipeline), pipeline, replica, console.batch_line(as_json), check
    )
    console_runs.drained(result, as_json)
    raise typer.Exit(0 if result["ok"] else 1)


@app.command()
def retry(
    config: Config,
    replica: Replica = "main",
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
) -> None:
    """Try the pending events that are due once more."""
    pipeline = writable(config)
    console_runs.summary(run_job("retry", pipeline, replica, spark=(spark_connect, master), as_json=as_json), as_json)


@app.command()
def redrive(
    config: Config,
    replica: Replica = "main",
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
) -> None:
    """Send unjoinable events round again, as if they were new."""
    pipeline = writable(config)
    console_runs.summary(run_job("redrive", pipeline, replica, spark=(spark_connect, master), as_json=as_json), as_json)


@app.command()
def process(
    config: Config,
    as_json: Json = False,
    lease: Annotated[
        float, typer.Option(min=0, help="go on for so many seconds; 0: until every row of the output is processed")
    ] = 0.0,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="put what was processed aside, and begin again from the whole output")
    ] = False,
    check: Annotated[bool, typer.Option(help="compare the sums at the end; exit code 1 unless they agree")] = True,
) -> None:
    """Give new rows of the output to the pipeline's processor, key by key (section `process`); starts no Spark."""
    found = run_job("process", writable(config), as_json=as_json, lease=lease, rebuild=rebuild, check=check)
    console_runs.processed(found, as_json)
    raise typer.Exit(0 if found.get("ok", True) else 1)


@app.command()
def signals(
    config: Config,
    key: Annotated[str | None, typer.Option(help="of this key alone, and how it stands")] = None,
    limit: Annotated[int, typer.Option(min=0, help="rows to show, newest first")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="print a JSON object a line, for a machine to read")] = False,
) -> None:
    """What per-key processing has reported, newest first. Starts no Spark."""
    from clickjoin.report import processing as report

    pipeline = load(config)
    console_listing.listed("signals", report.signals(pipeline, key, limit), "", limit, as_json)
    if key is not None and not as_json:
        console.pairs("the key, as it stands now", report.key_state(pipeline, key))
