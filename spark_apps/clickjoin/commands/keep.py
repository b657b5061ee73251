"""Commands that keep the registry: gc, reshard, registry rebuild, journal rebuild."""

from __future__ import annotations

from typing import Annotated

import typer

from clickjoin import apps, console
from clickjoin.commands.base import Config, Json, Remote, Replica, app, connected
from clickjoin.config import load


@app.command()
def gc(
    config: Config,
    replica: Replica = "main",
    remote: Remote = "",
    as_json: Json = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would go, and change nothing")] = False,
    wait: Annotated[float, typer.Option(min=0, help="seconds to wait for batches that are under way")] = 60.0,
) -> None:
    """Drop claims older than the retention, and old rows, history and files; rewrite buckets of many files into few."""
    pipeline = load(config)
    say = console.batch_line(as_json)
    done = apps.gc(connected(remote), pipeline, replica, say, dry_run=dry_run, wait=wait)
    console.collected(done, as_json)


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
    console.shards(
        apps.reshard(None, load(config), "", console.batch_line(as_json), shards=shards, since=since), as_json
    )


registry = typer.Typer(no_args_is_help=True, help="The registry of claims.")
journal = typer.Typer(no_args_is_help=True, help="The journal of batches.")
app.add_typer(registry, name="registry")
app.add_typer(journal, name="journal")


@registry.command(name="rebuild")
def rebuild_registry(
    config: Config,
    remote: Remote = "",
    as_json: Json = False,
    replace: Annotated[bool, typer.Option("--replace", help="put a registry that is there aside first")] = False,
) -> None:
    """Rebuild a lost or damaged registry from the outputs. Stop joins first, and verify after."""
    pipeline = load(config)
    say = console.batch_line(as_json)
    console.rebuilt("registry", apps.rebuild(connected(remote), pipeline, "", say, replace=replace), as_json)


@journal.command(name="rebuild")
def rebuild_journal(
    config: Config,
    remote: Remote = "",
    as_json: Json = False,
    replace: Annotated[bool, typer.Option("--replace", help="put a journal that is there aside first")] = False,
) -> None:
    """Rebuild a lost journal from outputs and landed tables. Stop joins first, and verify after."""
    pipeline = load(config)
    say = console.batch_line(as_json)
    console.rebuilt(
        "journal", apps.rebuild(connected(remote), pipeline, "", say, what="journal", replace=replace), as_json
    )
