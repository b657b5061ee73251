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
    offline: Annotated[bool, typer.Option(help="with --to: Data Docs that load nothing from other hosts")] = False,
    as_json: Json = False,
) -> None:
    """Where the project of Great Expectations lies; copy it to a folder, or put what was edited there back."""
    from clickjoin.cli.offline import make_offline
    from clickjoin.quality import place, project

    pipeline = load(config)
    if to and edited:
        raise ConfigError("--to and --from: both are given", remedy="Fetch the project, edit it, then put it back")
    if offline and not to:
        raise ConfigError("--offline: of which pages?", remedy="Give --to: the Data Docs are built there")
    found: dict[str, object] = {"project": place.root_of(pipeline)}
    if to:
        files, docs = place.fetch(pipeline, to)
        if offline:
            make_offline(to / "gx" / project.SITE)
        found |= {"to": str(to / "gx"), "files": files, "data_docs": docs}
    elif edited:
        found |= {"put_back": place.put_back(pipeline, edited)}
    if as_json:
        console.print_json(found)
        return
    for name, value in found.items():
        said = ", ".join(value) or "nothing was edited" if isinstance(value, list) else value
        console.report_line(f"{name.replace('_', ' ')}: {said}")
