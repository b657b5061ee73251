"""Command about what Spark needs beside Python: jars."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from clickjoin.cli import console
from clickjoin.cli.base import Json, app


@app.command()
def jars(
    fetch: Annotated[bool, typer.Option("--fetch", help="fetch Delta's JARs, each by its SHA-256")] = False,
    settings: Annotated[Path | None, typer.Option(help="an ivysettings.xml that names another repository")] = None,
    s3: Annotated[bool, typer.Option("--s3", help="also what a lake on S3 needs")] = False,
    as_json: Json = False,
) -> None:
    """Say which JARs and settings a Spark needs, and where the JARs are; exit code 1 if one is not there."""
    from clickjoin.spark import fetch_jars, jars, object_store, session

    fetched = fetch_jars.fetch(settings) if fetch else []
    fetched += fetch_jars.fetch(settings, s3=True) if fetch and s3 else []
    place, store = jars.folder(), jars.log_store()
    lacking = [jar.file for jar in jars.locked() if not jar.is_in(place)]
    lacking += [f"{jars.S3}/{jar.file}" for jar in jars.locked(s3=True) if s3 and not jar.is_in(place / jars.S3)]
    data: dict[str, Any] = {
        "folder": str(place), "log_store": str(store), "fetched": fetched, "lacking": lacking,
        "jars": None if lacking else jars.jars(s3),
        "conf": session.DELTA | (object_store.settings(os.environ) if s3 else {}),
    }  # fmt: skip
    if as_json:
        console.print_json(data)
    else:
        _say(data)
    raise typer.Exit(1 if lacking else 0)


def _say(data: dict[str, Any]) -> None:
    console.report_line(f"log store: {data['log_store']}")
    if data["lacking"]:
        console.report_line(f"Delta: {data['folder']} lacks {', '.join(data['lacking'])}, or has others of that name")
        console.report_line("`clickjoin jars --fetch` fetches them; CLICKJOIN_JARS names another folder")
        return
    console.report_line(f"Delta: {data['folder']}")
    console.report_line("A Spark of your own, be it a Connect server, is started with")
    console.report_line(f"  --jars {data['jars']}")
    for name, value in data["conf"].items():
        console.report_line(f"  --conf {name}={value}")
