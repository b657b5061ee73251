"""Commands for the day that a disk is lost: backup, restore, compare. None of them starts Spark."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from clickjoin.cli import console
from clickjoin.cli.base import Config, Json, app, load
from clickjoin.model.errors import ConfigError


@app.command()
def backup(
    config: Config,
    to: Annotated[
        str, typer.Option("--to", help="folder, or s3://BUCKET/PREFIX, for backups; each is <folder>/<pipeline>/<time>")
    ],
    wait: Annotated[float, typer.Option(min=0, help="seconds to wait for a moment at which nothing is committed")] = 30,
    keep: Annotated[int | None, typer.Option(min=1, help="remove all but the newest so many; default: none")] = None,
    as_json: Json = False,
) -> None:
    """Copy the whole lake as it stands at one moment, while joins run."""
    from clickjoin.backup.places import absolute
    from clickjoin.backup.take import take

    done = take(load(config), absolute(to), console.batch_line(as_json), wait=wait, keep=keep).to_dict()
    console.answer(done, as_json, lambda: console.pairs(f"backup: {done['backup']}", done))


@app.command()
def restore(
    config: Config,
    source: Annotated[str, typer.Option("--from", help="folder that `clickjoin backup --to` was given")],
    at: Annotated[str, typer.Option(help="name of a backup in it; default: the newest")] = "",
    force: Annotated[
        bool, typer.Option("--force", help="although the lake looks as if a process worked on it")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="check every file of the backup, change nothing")] = False,
    as_json: Json = False,
) -> None:
    """Put a backup in the lake's place, and the lake aside. Stop joins first; afterwards drain, and compare."""
    from clickjoin.backup.places import absolute
    from clickjoin.backup.restore import restore as put_back

    pipeline = load(config)
    done = put_back(pipeline, absolute(source), at, console.batch_line(as_json), force=force, dry_run=dry_run)
    before = pipeline.root if dry_run else done.aside
    lost = _shards_lost(before, done.place if dry_run else pipeline.root) if before else []
    found = done.to_dict() | {"timeline": lost, "dry_run": dry_run}
    console.answer(found, as_json, lambda: _restored(found, config))


def _restored(data: dict[str, Any], config: Path) -> None:
    """What was restored, or would be, and what to do now."""
    from clickjoin.schemas.process import FOLDER

    dry_run = data["dry_run"]
    head = f"{'would restore' if dry_run else 'restored'}: {data['backup']}"
    console.pairs(head, {name: value for name, value in data.items() if name not in ("dry_run", "timeline")})
    for entry in data["timeline"]:
        console.report_line(_taken_back(entry, config, dry_run=dry_run))
    if dry_run:
        return
    drain = f"clickjoin drain --config {config}"
    console.report_line(f"now run `{drain}` for each replica: what was joined since is read and joined again")
    if any(name.startswith(f"{FOLDER}/") for name in data["versions"]):
        console.report_line(f"per-key processing goes on from where it was: `clickjoin process --config {config}`")
    if data["aside"]:
        console.report_line(f"then `clickjoin compare --config {config} --aside {data['aside']}`: what could not be")


def _taken_back(entry: dict[str, Any], config: Path, *, dry_run: bool) -> str:
    """That a reshard came after the backup was taken, and how to have it again."""
    what = f"the reshard to {entry['shards']} shards from {entry['since']} on is newer than the backup"
    again = f"`clickjoin reshard --config {config} --shards {entry['shards']}`"
    return f"{what}, and {'would be taken back' if dry_run else f'was taken back: {again} adds one again'}"


def _shards_lost(before: str, after: str) -> list[dict[str, Any]]:
    """What the timeline of shards loses by a restore; nothing where the lake before cannot be read any more."""
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.report.registry import dropped

    try:
        return dropped(DeltaReader(before), DeltaReader(after))
    except Exception as error:  # it is done: a lake that was put aside because it is damaged says no more
        console.report_error(f"{before}: its timeline of shards cannot be read ({type(error).__name__})")
        return []


@app.command()
def compare(
    config: Config,
    aside: Annotated[str, typer.Option(help="the lake that a restore has put aside, or another backup")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="a new file for the events, as JSON lines")] = None,
    as_json: Json = False,
) -> None:
    """Events that the lake put aside had joined and this one has not; exit code 1 if there are any."""
    from clickjoin.backup.compare import by_state
    from clickjoin.backup.compare import compare as find
    from clickjoin.backup.places import absolute, reach

    pipeline, other = load(config), absolute(aside)
    reach(pipeline, other)
    found = list(find(pipeline, other))
    if out:
        try:
            with out.open("x", encoding="utf-8") as lines:
                lines.writelines(f"{json.dumps(asdict(item), default=str)}\n" for item in found)
        except OSError as error:
            raise ConfigError(f"{out}: cannot be written ({error.strerror})", remedy="Give a new file") from error
    states, some = by_state(found), [asdict(item) for item in found[:10]]
    data = {"missing": sum(states.values()), "states": states, "some": some}
    console.answer(data, as_json, lambda: _compared(data), fails=bool(found))


def _compared(data: dict[str, Any]) -> None:
    for item in data["some"]:
        console.report_line(f"{item['event_id']} at {item['event_time']}: {item['state']}")
    console.pairs("joined there and not here", {"all": data["missing"], **data["states"]})
