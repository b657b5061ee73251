"""Commands that look: validate, status, explain, schema, jars, quality gx. None of them starts Spark."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import clickjoin
from clickjoin.cli import console
from clickjoin.cli.base import Config, Json, app, load
from clickjoin.cli.console import report_line
from clickjoin.cli.job_commands import GROUPS
from clickjoin.model.errors import ConfigError

if TYPE_CHECKING:
    from clickjoin.report.validate import Validation
    from clickjoin.schemas import Table

_SHARES = {"doubled": "ids with several times"}  # printed in place of the field of section validation


@app.command()
def validate(config: Config, as_json: Json = False) -> None:
    """Check a pipeline's file, its adapter and its sources; exit code 1 if something is wrong."""
    from clickjoin.report import validate

    found = validate.validate(load(config))
    data = {"file": str(config), "ok": not found.problems, **_validation(found)}
    console.answer(data, as_json, lambda: _show_validation(config, found), fails=bool(found.problems))


def _validation(found: Validation) -> dict[str, Any]:
    streams = {
        found.sections[name]: {"read": sample.read, "good": sample.good, "bad": [asdict(bad) for bad in sample.bad]}
        for name, sample in found.samples.items()
    }
    matches = asdict(found.matches) if found.matches else None
    return {"problems": found.problems, "streams": streams, "matches": matches, "shares": found.shares}


def _show_validation(config: Path, found: Validation) -> None:
    """What was read, what would go to quarantine, how many find theirs, what is wrong."""
    for name, sample in found.samples.items():
        read = f"records read {sample.read:,}, good {sample.good:,}"
        passed = f", of no stream {sample.passed:,}" if sample.passed else ""
        report_line(f"{found.sections[name]}: {read}, would go to quarantine {sample.read - sample.good:,}{passed}")
        for bad in sample.bad:
            report_line(f"  {bad.reason}: {bad.count:,}, such as {bad.path} at offset {bad.offset}: {bad.detail}")
    if pairs := found.matches:
        report_line(
            f"{pairs.found:,} of {pairs.foreign:,} sampled foreign events find their primary event "
            f"among the first {pairs.primary:,} primary events"
        )
    if pairs and pairs.several:
        report_line(
            f"  {pairs.several:,} of them find several of one id: the latest before the foreign event is joined"
        )
    if found.shares:
        shares = ", ".join(f"{_SHARES.get(name, name)} {share:.1%}" for name, share in found.shares.items())
        report_line(f"shares: {shares}")
    for problem in found.problems or ["no problem found"]:
        report_line(f"{config}: {problem}")


@app.command()
def status(
    config: Config, as_json: Json = False, last: Annotated[int, typer.Option(min=1, help="batches to show")] = 10
) -> None:
    """Lag, backlog, counts and the last batches of every replica. Starts no Spark."""
    handle = clickjoin.open(config)
    found = handle.status(last)
    console.answer(found, as_json, lambda: show_status(handle.pipeline.pipeline, found))


_NO_WATERMARK = (
    "no watermark yet: each stream has to be read to its end without a problem, and have an event; where logs are "
    "loaded once, set batch.heartbeats: true"
)


def show_status(name: str, data: dict[str, Any]) -> None:
    """Print how a pipeline stands."""
    from clickjoin.report.status import batch_text, problem_text

    apart = ("replicas", "frequent_ids", "chain", "processing")
    console.pairs(name, {key: value for key, value in data.items() if key not in apart})
    for said in data.get("frequent_ids", ()):
        report_line(f"problem: frequent-id: {said}")
    for replica, part in data["replicas"].items():
        listed = ("totals", "problems", "last")
        console.pairs(f"replica {replica}", {k: v for k, v in part.items() if k not in listed} | part["totals"])
        if part.get("watermark", "") is None:
            report_line(_NO_WATERMARK)
        for problem in part["problems"]:
            report_line(problem_text(**problem))
        report_line("last batches" if part["last"] else "no batch has been settled yet")
        for row in part["last"]:
            report_line(batch_text(row, f"{row['settled_at']:%m-%d %H:%M:%S}"))
    _show_chain(data.get("chain", []))
    console.pairs("per-key processing", data.get("processing", {}))


def _show_chain(parts: list[dict[str, Any]]) -> None:
    """The pipelines that read one another, a line each."""
    if parts:
        report_line("chain", "bold")
    for part in parts:
        reads = ", ".join(
            f"{stream} from {name} ({part['unread'].get(stream, '?')} unread)" for stream, name in part["reads"].items()
        )
        mark = f"{part['watermark']:%Y-%m-%d %H:%M:%S} UTC" if part["watermark"] else "not known"
        stands = part.get("problem") or f"joined {part['joined']}; output complete up to {mark} ({part['why']})"
        report_line(f"{part['pipeline']}: {stands}" + (f"; reads {reads}" if reads else ""))


@app.command()
def explain(
    config: Config,
    event_id: Annotated[str | None, typer.Argument(help="the event's id")] = None,
    key: Annotated[str | None, typer.Option(help="of per-key processing, instead of an event")] = None,
    as_json: Json = False,
) -> None:
    """Where an event is, and its whole way: file and offset, batch, claim, attempts, output row. Starts no Spark.

    Where pipelines in the same folder read this one's output, or it reads theirs, its way goes on through them.
    With --key: how a key of section `process` stands: what is expected of it now, open windows, signals, late events.
    """
    from clickjoin.report.processing import explain_key

    if (event_id is None) == (key is None):
        raise ConfigError("explain needs an event's id or a key", remedy="Give the id, or --key KEY: one of them")
    if key is not None:
        stands = explain_key(load(config), key)
        shown = {"expected_per_window" if name == "expected" else name: value for name, value in stands.items()}
        is_known = stands["has_state"] or stands["signals_reported"] or stands["late_events"]
        title = "the key, as it stands now"
        console.answer(stands, as_json, lambda: console.pairs(title, shown), fails=not is_known)
    elif not event_id or not event_id.strip():
        raise ConfigError("an empty id names no event", remedy="Give the event's id")
    else:
        found = clickjoin.open(config).explain(event_id)
        console.answer(found, as_json, lambda: _show_histories(found), fails=found["state"] == "unknown")


def _show_histories(found: dict[str, Any]) -> None:
    _show_history(found, f"{found['event_id']}: {found['state']}")
    for part in found.get("chain", []):
        report_line("")
        _show_history(part, f"pipeline {part['pipeline']}, {part['how']}: {part['event_id']}: {part['state']}")


def _show_history(data: dict[str, Any], title: str) -> None:
    report_line(title + (f". {data['remedy']}" if data["remedy"] else ""))
    for step in data["history"]:
        report_line(step["table"], "bold")
        for key, value in step.items():
            if key != "table":
                report_line(f"  {key.replace('_', ' ')}: {value}")  # whole, however long: it is there to be copied
    if among := data.get("candidates"):
        report_line(f"candidates: {among['count']} primary events of its key, {len(among['events'])} shown", "bold")
        for one in among["events"]:
            report_line(f"  {one['event_time']}  {one['event_id']}: {one['why']} (landed {one['landed_at']})")


@app.command()
def schema(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="as a Markdown page: all tables, or the file's fields")
    ] = False,
    config_file: Annotated[
        bool, typer.Option("--config-file", help="JSON Schema of a pipeline's file, or with --markdown")
    ] = False,
    jobs: Annotated[bool, typer.Option("--jobs", help="all jobs as a Markdown page, or with --json")] = False,
    as_json: Json = False,
) -> None:
    """Every table's columns, types and units; the fields of a pipeline's file; or what each job takes."""
    from clickjoin import schemas
    from clickjoin.config import json_schema, reference
    from clickjoin.jobs import all_jobs

    if (jobs and (config_file or markdown)) or (as_json and (config_file or markdown)):
        raise ConfigError(
            f"{'--config-file' if config_file else '--markdown'} does not go with {'--jobs' if jobs else '--json'}",
            remedy="--markdown goes with --config-file, --json with --jobs, and each of the four alone",
        )
    if config_file:
        typer.echo(reference.markdown() if markdown else json_schema())
    elif jobs:
        console.print_json(all_jobs.data()) if as_json else typer.echo(all_jobs.markdown())
    elif markdown:
        typer.echo(schemas.markdown())
    elif as_json:
        console.print_json({table.name: _columns(table) for table in schemas.ALL})
    else:
        for table in schemas.ALL:
            report_line(f"{table.name}: {table.purpose}")
            console.columns(("column", "type", "meaning"), [one | {"column": one["name"]} for one in _columns(table)])


def _columns(table: Table) -> list[dict[str, Any]]:
    return [{"name": column.name, "type": column.type, "meaning": column.meaning} for column in table.columns]


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
    console.answer(data, as_json, lambda: _show_jars(data), fails=bool(lacking))


def _show_jars(data: dict[str, Any]) -> None:
    report_line(f"log store: {data['log_store']}")
    if data["lacking"]:
        report_line(f"Delta: {data['folder']} lacks {', '.join(data['lacking'])}, or has others of that name")
        report_line("`clickjoin jars --fetch` fetches them; CLICKJOIN_JARS names another folder")
        return
    report_line(f"Delta: {data['folder']}")
    report_line("A Spark of your own, also a Connect server, is started with")
    report_line(f"  --jars {data['jars']}")
    for name, value in data["conf"].items():
        report_line(f"  --conf {name}={value}")


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
        raise ConfigError("--offline: there are no pages to rewrite", remedy="Give --to: the Data Docs are built there")
    found: dict[str, object] = {"project": place.root_of(pipeline)}
    to, edited = (path and path.absolute() for path in (to, edited))
    if to:
        files, docs = place.fetch(pipeline, to)
        if offline:
            make_offline(to / "gx" / project.SITE)
        found |= {"to": str(to / "gx"), "files": files, "data_docs": docs}
    elif edited:
        found |= {"put_back": place.put_back(pipeline, edited)}
    console.answer(found, as_json, lambda: _show_project(found))


def _show_project(found: dict[str, object]) -> None:
    for name, value in found.items():
        said = ", ".join(value) or "nothing was edited" if isinstance(value, list) else value
        console.report_line(f"{name.replace('_', ' ')}: {said}")
