"""Commands that look: validate, status, explain, schema. None of them starts Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from clickjoin import console
from clickjoin.commands.base import Config, Json, app, small_tables
from clickjoin.config import json_schema, load


@app.command()
def validate(config: Config, as_json: Json = False) -> None:
    """Check a pipeline's file, its adapter and its sources; exit code 1 if something is wrong."""
    from clickjoin.report.validate import findings

    problems = findings(load(config))
    console.findings(config, problems, as_json)
    raise typer.Exit(1 if problems else 0)


@app.command()
def status(
    config: Config, as_json: Json = False, last: Annotated[int, typer.Option(help="batches to show")] = 10
) -> None:
    """Lag, backlog, counts and the last batches of every replica. Starts no Spark."""
    from clickjoin.report.backlog import backlog
    from clickjoin.report.status import status as find

    pipeline = load(config)
    small = small_tables(pipeline)
    found = find(small, last)
    for name in found["replicas"] or ["main"]:
        found["replicas"].setdefault(name, {"last": [], "totals": {}}).update(backlog(pipeline, small, name))
    console.status(pipeline.pipeline, found, as_json)


@app.command()
def explain(event_id: str, config: Config, as_json: Json = False) -> None:
    """Where an event is, and its whole way: file and offset, batch, claim, attempts, output row. Starts no Spark."""
    from clickjoin.report.explain import explain as find

    pipeline = load(config)
    found = find(pipeline, small_tables(pipeline), event_id)
    console.explained(found, as_json)
    raise typer.Exit(1 if found["state"] == "unknown" else 0)


@app.command()
def schema(
    markdown: Annotated[bool, typer.Option("--markdown", help="all tables as a Markdown page")] = False,
    config_file: Annotated[bool, typer.Option("--config-file", help="JSON Schema of a pipeline's file")] = False,
    as_json: Json = False,
) -> None:
    """Every table's columns, types and units; or the JSON Schema of a pipeline's file."""
    from clickjoin import tables

    if config_file:
        typer.echo(json_schema())
    elif markdown:
        typer.echo(tables.markdown())
    else:
        console.schema(as_json)
