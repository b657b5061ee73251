"""Commands that keep the registry: gc, reshard, registry rebuild, journal rebuild."""

from __future__ import annotations

from typing import Annotated

import typer

from clickjoin.cli import console_registry
from clickjoin.cli.base import Config, Json, Master, Replica, SparkConnect, app, run_job
from clickjoin.config import load


@app.command()
def gc(
    config: Config,
    replica: Replica = "main",
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would go, and change nothing")] = False,
    wait: Annotated[float, typer.Option(min=0, help="seconds to wait for batches that are under way")] = 60.0,
) -> None:
    """Drop claims older than the retention, and old rows, history and files; rewrite buckets of many files into few."""
    pipeline = load(config)
    result = run_job(
        "gc", pipeline, replica, spark=(spark_connect, master), as_json=as_json, dry_run=dry_run, wait=wait
    )
    console_registry.collected(result, as_json)


@app.command()
def reshard(
    config: Config,
    as_json: Json = False,
    shards: Annotated[int | None, typer.Option(help="number of shards from then on; without it, only look")] = None,
    since: Annotated[
        str | None, typer.Option("--from", help="event time, such as 2026-03-01T12:00Z; default: as soon as is safe")
    ] = None,
) -> None:
    """Spread events from a future time on over more or fewer shards; shows the timeline and rows by shard. No Spark."""
    console_registry.shards(run_job("reshard", load(config), as_json=as_json, shards=shards, since=since), as_json)


registry = typer.Typer(no_args_is_help=True, help="The registry of claims.")
journal = typer.Typer(no_args_is_help=True, help="The journal of batches.")
app.add_typer(registry, name="registry")
app.add_typer(journal, name="journal")


@registry.command(name="rebuild")
def rebuild_registry(
    config: Config,
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
    replace: Annotated[bool, typer.Option("--replace", help="put a registry that is there aside first")] = False,
) -> None:
    """Rebuild a lost or damaged registry from the outputs. Stop joins first, and verify after."""
    pipeline = load(config)
    result = run_job(
        "rebuild",
        pipeline,
        spark=(spark_connect, master),
        as_json=as_json,
        what="registry",
        replace=replace,
    )
    console_registry.rebuilt("registry", result, as_json)


@journal.command(name="rebuild")
def rebuild_journal(
    config: Config,
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
    replace: Annotated[bool, typer.Option("--replace", help="put a journal that is there aside first")] = False,
) -> None:
    """Rebuild a lost journal from outputs and landed tables. Stop joins first, and verify after."""
    pipeline = load(config)
    result = run_job(
        "rebuild",
        pipeline,
        spark=(spark_connect, master),
        as_json=as_json,
        what="journal",
        replace=replace,
    )
    console_registry.rebuilt("journal", result, as_json)
