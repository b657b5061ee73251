"""`clickjoin quality gx`: a pipeline's project of Great Expectations, fetched to a disk and put back. No Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clickjoin.cli import console
from clickjoin.cli.base import Config, Json, load
from clickjoin.cli.job_commands import GROUPS
from clickjoin.model.errors import ConfigError


@GROUPS["quality"].command()
def gx(
    config: Config,
    to: Annotated[Path | None, typer.Option(help="folder to copy the project to, with its results")] = None,
    edited: Annotated[Path | None, typer.Option("--from", help="folder it was copied to: put edits back")] = None,
    as_json: Json = False,
) -> None:
    """Where the project of Great Expectations lies; copy it to a folder, or put what was edited there back."""
    from clickjoin.quality import place

    pipeline = load(config)
    if to and edited:
        raise ConfigError("--to and --from: both are given", remedy="Fetch the project, edit it, then put it back")
    found: dict[str, object] = {"project": place.root_of(pipeline)}
    if to:
        files, docs = place.fetch(pipeline, to)
        found |= {"to": str(to / "gx"), "files": files, "data_docs": docs}
    elif edited:
        found |= {"put_back": place.put_back(pipeline, edited)}
    console.answer(found, as_json, lambda: _show(found))


def _show(found: dict[str, object]) -> None:
    for name, value in found.items():
        said = ", ".join(value) or "nothing was edited" if isinstance(value, list) else value
        console.report_line(f"{name.replace('_', ' ')}: {said}")
