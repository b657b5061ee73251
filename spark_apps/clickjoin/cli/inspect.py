"""Commands that look: validate, status, explain, schema. None of them starts Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from clickjoin.cli import console, console_listing
from clickjoin.cli.base import Config, Json, app, small_tables
from clickjoin.config import json_schema, load
from clickjoin.model.errors import ConfigError


@app.command()
def validate(config: Config, as_json: Json = False) -> None:
    """Check a pipeline's file, its adapter and its sources; exit code 1 if something is wrong."""
    from clickjoin.cli import console_validate
    from clickjoin.report import validate

    found = validate.validate(load(config))
    problems = found.problems
    console_validate.show(config, found, as_json)
    raise typer.Exit(1 if problems else 0)


@app.command()
def status(
    config: Config, as_json: Json = False, last: Annotated[int, typer.Option(min=1, help="batches to show")] = 10
) -> None:
    """Lag, backlog, counts and the last batches of every replica. Starts no Spark."""
    from clickjoin.chain.links import beside
    from clickjoin.event_store.bad_input import FLOOD
    from clickjoin.report.chain import chain_status
    from clickjoin.report.processing import process_status
    from clickjoin.report.status import backlog
    from clickjoin.report.status import status as find

    pipelines = beside(config)
    pipeline = pipelines[0]
    delta = small_tables(pipeline)
    found = find(delta, last)
    for name in found["replicas"] or ["main"]:
        part = found["replicas"].setdefault(name, {"last": [], "totals": {}})
        floods = [problem for problem in part.get("problems", []) if problem["kind"] == FLOOD]
        part.update(backlog(pipeline, delta, name))
        part["problems"] += floods
    found["chain"] = chain_status(pipelines)
    if pipeline.process:
        found["processing"] = process_status(pipeline)
    console.status(pipeline.pipeline, found, as_json)


@app.command()
def explain(
    config: Config,
    event_id: Annotated[str | None, typer.Argument(help="the event's id")] = None,
    key: Annotated[str | None, typer.Option(help="of per-key processing, instead of an event")] = None,
    as_json: Json = False,
) -> None:
    """Where an event is, and its whole way: file and offset, batch, claim, attempts, output row. Starts no Spark.

    Where pipelines in the same folder read this one's output, or it reads theirs, its way goes on through them.
    With --key: how a key of section `process` stands: what is expected of it now, open windows, signals, late events.
    """
    from clickjoin.chain.links import beside
    from clickjoin.report.chain import explain_chain
    from clickjoin.report.processing import explain_key

    if (event_id is None) == (key is None):
        raise ConfigError("explain needs an event's id or a key", remedy="Give the id, or --key KEY: one of them")
    if key is not None:
        stands = explain_key(load(config), key)
        console_listing.key_stands(stands, as_json)
        raise typer.Exit(0 if stands["has_state"] or stands["signals_reported"] or stands["late_events"] else 1)
    if not (event_id or "").strip():
        raise ConfigError("an empty id names no event", remedy="Give the event's id")
    found = explain_chain(beside(config), event_id or "")
    console.explained(found, as_json)
    raise typer.Exit(1 if found["state"] == "unknown" else 0)


@app.command()
def schema(
    markdown: Annotated[bool, typer.Option("--markdown", help="all tables as a Markdown page")] = False,
    config_file: Annotated[bool, typer.Option("--config-file", help="JSON Schema of a pipeline's file")] = False,
    jobs: Annotated[bool, typer.Option("--jobs", help="all jobs as a Markdown page, or with --json")] = False,
    as_json: Json = False,
) -> None:
    """Every table's columns, types and units; the JSON Schema of a pipeline's file; or what each job takes."""
    from clickjoin import schemas
    from clickjoin.jobs import all_jobs

    if config_file + jobs + markdown > 1 or (as_json and (config_file or markdown)):
        raise ConfigError(
            f"{'--config-file' if config_file else '--markdown'} goes with no other option",
            remedy="Ask for one thing at a time; --json goes with --jobs, or alone",
        )
    if config_file:
        typer.echo(json_schema())
    elif jobs:
        console.print_json(all_jobs.data()) if as_json else typer.echo(all_jobs.markdown())
    elif markdown:
        typer.echo(schemas.markdown())
    else:
        console.schema(as_json)
