"""Commands that list what did not join: pending, unjoinable, expired, quarantine and its export. All without Spark."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from clickjoin.cli import console, console_listing
from clickjoin.cli.base import Config, Json, app, small_tables
from clickjoin.config import load
from clickjoin.model.errors import ConfigError
from clickjoin.model.span import parse_moment

JsonLines = Annotated[bool, typer.Option("--json", help="print a JSON object a line, for a machine to read")]
Limit = Annotated[int, typer.Option(min=0, help="rows to show, newest first; with --by, groups")]
Since = Annotated[str, typer.Option("--from", help="first event time, such as 2026-03-01T12:00Z; default: all")]
Until = Annotated[str, typer.Option("--to", help="event time to end before; default: all")]
ByAttempt = Annotated[Literal["attempt", "hour"] | None, typer.Option(help="only count, by this")]
ByHour = Annotated[Literal["hour"] | None, typer.Option(help="only count, by this")]
ByReason = Annotated[Literal["reason", "file", "hour"] | None, typer.Option(help="only count, by this")]


@app.command()
def pending(
    config: Config, by: ByAttempt = None, limit: Limit = 20, since: Since = "", until: Until = "",
    as_json: JsonLines = False,
) -> None:  # fmt: skip
    """Events that wait for their primary event, and when each is tried again."""
    _list("pending", config, by, limit, since, until, as_json)


@app.command()
def unjoinable(
    config: Config, by: ByAttempt = None, limit: Limit = 20, since: Since = "", until: Until = "",
    as_json: JsonLines = False,
) -> None:  # fmt: skip
    """Events that were given up; `redrive` sends them round again."""
    _list("unjoinable", config, by, limit, since, until, as_json)


@app.command()
def expired(
    config: Config, by: ByHour = None, limit: Limit = 20, since: Since = "", until: Until = "",
    as_json: JsonLines = False,
) -> None:  # fmt: skip
    """Events that came after the registry had forgotten their time: kept, and never joined."""
    _list("expired", config, by, limit, since, until, as_json)


def _list(name: str, config: Path, by: str | None, limit: int, since: str, until: str, as_json: bool) -> None:
    from clickjoin.report.listing import listed

    first, last = (parse_moment(text) if text else None for text in (since, until))
    if first and last and first >= last:
        raise ConfigError(
            f"--from {since} is not before --to {until}", remedy="Give an earlier --from, or a later --to"
        )
    delta = small_tables(load(config))
    found = listed(delta, name, datetime.now(UTC), since=first, until=last, by=by or "", limit=limit)
    console_listing.listed(name, found, by or "", limit, as_json)


quarantine = typer.Typer(invoke_without_command=True, help="Records that could not be understood, and why.")
app.add_typer(quarantine, name="quarantine")


@quarantine.callback()
def list_quarantine(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="the pipeline's YAML file", envvar="CLICKJOIN_CONFIG")
    ] = None,
    by: ByReason = None,
    limit: Limit = 20,
    since: Annotated[str, typer.Option("--from", help="first time of quarantine; default: all")] = "",
    until: Annotated[str, typer.Option("--to", help="time of quarantine to end before; default: all")] = "",
    as_json: JsonLines = False,
) -> None:
    """Records that could not be understood, and why."""
    if context.invoked_subcommand:
        return
    if config is None:
        raise typer.BadParameter(
            "it is missing: give the pipeline's YAML file", ctx=context, param_hint="'--config' / '-c'"
        )
    _list("quarantine", config, by, limit, since, until, as_json)


@quarantine.command(name="export")
def export_quarantine(
    config: Config,
    out: Annotated[Path, typer.Option("--out", "-o", help="a new file; a log wherever a source's glob matches it")],
    stream: Annotated[str, typer.Option(help="primary or foreign; needed where both have such records")] = "",
    reason: Annotated[str, typer.Option(help="only records with this reason, such as bad-time")] = "",
    as_json: Json = False,
) -> None:
    """Write quarantined records to a file, byte for byte, to be read again once their cause is fixed."""
    from clickjoin.kernel.parse.lines import REASONS
    from clickjoin.report.export import export

    if stream not in ("", "primary", "foreign"):
        raise ConfigError(f"--stream {stream}: no such stream", remedy="Streams are primary and foreign")
    if reason not in ("", *REASONS):
        raise ConfigError(f"--reason {reason}: no such reason", remedy=f"Reasons are {', '.join(REASONS)}")
    pipeline = load(config)
    console.exported(out, asdict(export(pipeline, small_tables(pipeline), out, stream=stream, reason=reason)), as_json)
