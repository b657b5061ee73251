"""Commands to begin with: init, generate."""

from __future__ import annotations

import re
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from clickjoin.cli import console
from clickjoin.cli.base import Config, app, writable
from clickjoin.config.starter import starter
from clickjoin.model.errors import ConfigError
from clickjoin.model.span import parse_moment

_NAMED = re.compile(r"""^pipeline: *["']?([a-z][a-z0-9_-]*)""", re.MULTILINE)


@app.command()
def init(
    config: Config,
    from_logs: Annotated[str, typer.Option(help="glob of the foreign stream's logs: look at them and propose")] = "",
    primary: Annotated[str, typer.Option(help="with --from-logs: glob of the primary stream's logs")] = "",
    stream: Annotated[str, typer.Option(help="glob of the logs of one stream, to publish each event once")] = "",
) -> None:
    """Write a pipeline file to start from, if there is none yet; else create the pipeline's tables.

    With --from-logs and --primary, or with --stream, the file is proposed from some of the logs' records, with a reason
    for each guess. Where both name the same files, `where` says which records are whose.
    In place of a glob, table:PATH is a Delta table, and pipeline:NAME the output of another pipeline in ./lake.
    Its paths are absolute, below the folder that this is run in: it can be copied to where Airflow finds it.
    """
    if from_logs or primary or stream:
        _propose(config, from_logs, primary, stream)
        return
    if not config.exists():
        _write(config, starter(Path.cwd()))
        console.report_line(f"{config} written: edit it (your logs' folders, your columns)")
        _next(config)
        return
    from clickjoin.lake_setup import initialise

    pipeline = writable(config)
    made = initialise(pipeline)
    console.report_line(f"{pipeline.root}: {f'created {len(made)} tables' if made else 'all tables are there already'}")
    _next(config)


def _propose(config: Path, foreign: str, primary: str, stream: str) -> None:
    from clickjoin.proposal.file import flow, propose, propose_one

    if stream and (foreign or primary):
        raise ConfigError("--stream is of one stream", remedy="Leave --from-logs and --primary out, or --stream")
    if not (stream or (foreign and primary)):
        raise ConfigError("both logs are needed", remedy='Give --from-logs "clicks/*" and --primary "queries/*"')
    if config.exists():
        raise ConfigError(f"{config}: is there already", remedy="Give the name of a new file")
    name = _free_name(config, "events" if stream else "clicks")
    proposal = propose_one(stream, Path.cwd(), name) if stream else propose(primary, foreign, Path.cwd(), name)
    _write(config, proposal.text)
    for field, choice in proposal.choices.items():
        console.report_line(f"{field}: {flow(choice.value)}  ({choice.sure}: {choice.why})")
    console.report_line(f"{config} written: check what is not sure")
    _next(config)


_NEXT = (
    ("validate", "counts what is good, and what joins"),
    ("drain", "joins all that the logs hold, and counts every id"),
    ("run", "joins on as they grow; or copy the file to where Airflow finds it"),
)


def _next(config: Path) -> None:
    """What to do after a file was written, or tables were made."""
    console.report_line("next:")
    for command, does in _NEXT:
        console.report_line(f"  {f'clickjoin {command} --config {config}':<40}  # {does}")


def _free_name(config: Path, usual: str) -> str:
    """A pipeline's name that no file beside this one has, nor a folder of the lake: two would write the same tables."""
    files = [path for path in config.absolute().parent.glob("*") if path.suffix in (".yaml", ".yml")]
    taken = {found[1] for path in files if (found := _NAMED.search(_text_of(path)))}
    stem = re.sub(r"[^a-z0-9_-]+", "_", config.stem.lower()).strip("_-")
    wanted = [usual, *([stem] if stem[:1].isalpha() else []), *(f"{usual}{number}" for number in range(2, 1000))]
    return next(name for name in wanted if name not in taken and not (Path.cwd() / "lake" / name).exists())


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:  # a folder, or another user's file
        return ""


def _write(config: Path, text: str) -> None:
    try:
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{config}: cannot be written ({error.strerror})", remedy="Give another place") from error


@app.command(name="generate")
def generate_logs(
    folder: Annotated[Path, typer.Argument(help="where to write queries/, clicks/ and the truth about them")],
    clicks: Annotated[int, typer.Option(help="clicks in all")] = 10_000,
    queries: Annotated[int, typer.Option(help="queries in all")] = 4_000,
    rate: Annotated[float, typer.Option(help="lines a second, live; 0: at once, with event times in the past")] = 0.0,
    duration: Annotated[float | None, typer.Option(help="seconds of event time; default an hour (at once)")] = None,
    zipf: Annotated[float, typer.Option(help="exponent of clicks per query; 0: all alike")] = 1.0,
    delay: Annotated[float, typer.Option(help="median seconds from query to click")] = 10.0,
    disorder: Annotated[float, typer.Option(help="a line is written up to this many seconds late")] = 0.0,
    duplicates: Annotated[float, typer.Option(help="fraction of events written twice")] = 0.006,
    late: Annotated[float, typer.Option(help="fraction of queries written late")] = 0.0,
    late_seconds: Annotated[float, typer.Option(help="how late those are")] = 30.0,
    orphans: Annotated[float, typer.Option(help="fraction of clicks on a query that does not exist")] = 0.0,
    broken: Annotated[float, typer.Option(help="fraction of extra, damaged lines")] = 0.0,
    payload: Annotated[int, typer.Option(help="bytes of filling in a record")] = 64,
    files: Annotated[int, typer.Option(help="files a stream")] = 4,
    seed: Annotated[int, typer.Option(help="same seed, same traffic")] = 0,
    start: Annotated[
        str | None, typer.Option(help="time of the first event, such as 2026-03-01T12:00Z; same seed, same bytes")
    ] = None,
) -> None:
    """Write seeded traffic as logs: two streams with everything that goes wrong in real ones."""
    from clickjoin.generate import Traffic, generate

    traffic = Traffic(
        clicks=clicks, queries=queries, rate=rate, duration=duration, zipf=zipf, click_delay=delay, disorder=disorder,
        duplicates=duplicates, late=late, late_seconds=late_seconds, orphans=orphans, broken=broken, payload=payload,
        files=files, seed=seed, start=parse_moment(start) if start else None,
    )  # fmt: skip
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the truth is written all the same
    with console.progress("writing lines") as advance:
        truth = generate(folder, traffic, progress=advance)
    said = ("queries", "clicks", "joinable", "orphans", "complete")
    console.pairs(f"written to {folder}", {name: value for name, value in asdict(truth).items() if name in said})
