"""The command that forgets a person's events."""

from __future__ import annotations

from typing import Annotated

import typer

from clickjoin.cli import console_registry
from clickjoin.cli.base import Config, Json, Master, Replica, SparkConnect, app, run_job, small_tables, writable
from clickjoin.config import load
from clickjoin.erasure.wanted import parse
from clickjoin.model.errors import ConfigError


@app.command()
def forget(
    config: Config,
    replica: Replica = "main",
    spark_connect: SparkConnect = "",
    master: Master = "",
    as_json: Json = False,
    where: Annotated[
        list[str] | None, typer.Option(help="STREAM.PATH=VALUE, such as foreign.user_id=U17; any of several")
    ] = None,
    ids: Annotated[str | None, typer.Option(help="file of event ids, one a line")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="do it; without it, say what would go")] = False,
    request: Annotated[str | None, typer.Option(help="the request's name, written down with each event")] = None,
    wait: Annotated[float, typer.Option(min=0, help="seconds to wait for batches that are under way")] = 60.0,
    listing: Annotated[
        bool, typer.Option("--list", help="ids of all that was ever forgotten; starts no Spark")
    ] = False,
) -> None:
    """Take a person's events out of all tables, for good; exit code 1 while a batch under way may bring one back."""
    if listing:
        from clickjoin.forgotten.known import forgotten

        known = forgotten(small_tables(load(config)))
        typer.echo(
            "".join(f"{name}\n" for name in sorted({key for keys in known.keys.values() for key, _ in keys})), nl=False
        )
        return
    parse(where or (), ids)  # before Spark takes its time to start
    if any("\n" in one for one in where or ()):
        raise ConfigError("--where: a value with a line end", remedy="Name the events with --ids")
    found = run_job(
        "forget", writable(config), replica, spark=(spark_connect, master), as_json=as_json,
        where="\n".join(where or ()), ids=ids, request=request, apply=apply, wait=wait,
    )  # fmt: skip
    console_registry.forgotten(found, as_json)
    raise typer.Exit(1 if found["open"] else 0)
