"""Command about the format of a lake's tables: upgrade."""

from __future__ import annotations

from typing import Annotated

import typer

from clickjoin.cli import console
from clickjoin.cli.base import Config, Json, app, writable
from clickjoin.config import load


@app.command()
def upgrade(
    config: Config,
    apply: Annotated[bool, typer.Option("--apply", help="do it; else only say what would be done")] = False,
    as_json: Json = False,
) -> None:
    """Say what it takes to raise a lake to the format of this clickjoin; --apply does it, while joins run or not.

    First run the new clickjoin everywhere: it works on the older format too, and an older one not on the newer.
    """
    from clickjoin.lake_upgrade import upgrade as raise_format

    pipeline = writable(config) if apply else load(config)
    done = raise_format(pipeline, (lambda _: None) if as_json else console.report_line, apply=apply)
    if as_json:
        return console.print_json(done)
    if not done["changes"]:
        return console.report_line(f"{pipeline.root}: is of format {done['format']}; there is nothing to do")
    for number, text in done["brings"].items():
        console.report_line(f"format {number}: {text}")
    if apply:
        return console.report_line(f"{pipeline.root}: is of format {done['format']} now; what ran on it starts again")
    return console.report_line(
        "nothing was written; --apply does it, once every copy of the pipeline runs this clickjoin"
    )
