"""`clickjoin`: run a pipeline, look at it, and mend it, from a shell."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from clickjoin import apps, console
from clickjoin.config import Pipeline, json_schema, load
from clickjoin.errors import ClickjoinError, ConfigError
from clickjoin.starter import STARTER

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
Config = Annotated[Path, typer.Option("--config", "-c", help="the pipeline's YAML file", envvar="CLICKJOIN_CONFIG")]
Json = Annotated[bool, typer.Option("--json", help="print JSON, for a machine to read")]
Replica = Annotated[str, typer.Option(help="name of this running copy", envvar="CLICKJOIN_REPLICA")]
Remote = Annotated[
    str, typer.Option(help="Spark Connect address (sc://…), or a file that holds it", envvar="CLICKJOIN_REMOTE")
]


def _spark(remote: str) -> Any:
    from clickjoin import session

    if remote and not remote.startswith("sc://"):
        try:
            remote = Path(remote).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{remote}: cannot be read ({error})", remedy="Give sc://… or a file that holds it"
            ) from error
    with console.waiting("starting Spark" if not remote else "connecting to Spark"):
        return session.connect(remote) if remote else session.in_process()


def _small(pipeline: Pipeline) -> Any:
    from clickjoin.lake import SmallTables

    return SmallTables(pipeline.root)


@app.command()
def init(config: Config) -> None:
    """Write a pipeline file to start from, if there is none yet; else create the pipeline's tables."""
    if not config.exists():
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(STARTER, encoding="utf-8")
        console.say(f"{config} written: put in your logs' folders and columns, then run `clickjoin init` once more")
        return
    from clickjoin.setup import initialise

    pipeline = load(config)
    made = initialise(pipeline)
    console.say(f"{pipeline.root}: {f'created {len(made)} tables' if made else 'all tables are there already'}")


@app.command()
def validate(config: Config, as_json: Json = False) -> None:
    """Check a pipeline's file, its adapter and its sources; exit code 1 if something is wrong."""
    from clickjoin.report.validate import findings

    problems = findings(load(config))
    console.findings(config, problems, as_json)
    raise typer.Exit(1 if problems else 0)


@app.command()
def run(
    config: Config,
    replica: Replica = "main",
    remote: Remote = "",
    as_json: Json = False,
    lease: Annotated[float | None, typer.Option(help="stop after this many seconds; default: never")] = None,
) -> None:
    """Join new events, and retry pending ones, until stopped."""
    from clickjoin.run import forever

    pipeline = load(config)
    summary = forever(_spark(remote), pipeline, replica, console.batch_line(as_json), lease)
    console.summary(summary, as_json)


@app.command()
def drain(
    config: Config,
    replica: Replica = "main",
    remote: Remote = "",
    as_json: Json = False,
    check: Annotated[bool, typer.Option(help="count every id at the end; exit code 1 unless the sums agree")] = True,
) -> None:
    """Join all that the sources hold now and the retries that fall due meanwhile, then say whether the sums agree."""
    from clickjoin.run import drained

    pipeline = load(config)
    result = drained(_spark(remote), pipeline, replica, console.batch_line(as_json), check)
    console.drained(result, as_json)
    raise typer.Exit(0 if result["ok"] else 1)


@app.command()
def retry(config: Config, replica: Replica = "main", remote: Remote = "", as_json: Json = False) -> None:
    """Try the pending events that are due once more."""
    pipeline = load(config)
    console.summary(apps.retry(_spark(remote), pipeline, replica, console.batch_line(as_json)), as_json)


@app.command()
def redrive(config: Config, replica: Replica = "main", remote: Remote = "", as_json: Json = False) -> None:
    """Send unjoinable events round again, as if they were new."""
    pipeline = load(config)
    console.summary(apps.redrive(_spark(remote), pipeline, replica, console.batch_line(as_json)), as_json)


@app.command()
def status(
    config: Config, as_json: Json = False, last: Annotated[int, typer.Option(help="batches to show")] = 10
) -> None:
    """Lag, backlog, counts and the last batches of every replica. Starts no Spark."""
    from clickjoin.report.backlog import backlog
    from clickjoin.report.status import status as find

    pipeline = load(config)
    small = _small(pipeline)
    found = find(small, last)
    for name in found["replicas"] or ["main"]:
        found["replicas"].setdefault(name, {"last": [], "totals": {}}).update(backlog(pipeline, small, name))
    console.status(pipeline.pipeline, found, as_json)


@app.command()
def explain(event_id: str, config: Config, as_json: Json = False) -> None:
    """Where an event is, and its whole way: file and offset, batch, claim, attempts, output row. Starts no Spark."""
    from clickjoin.report.explain import explain as find

    pipeline = load(config)
    found = find(pipeline, _small(pipeline), event_id)
    console.explained(found, as_json)
    raise typer.Exit(1 if found["state"] == "unknown" else 0)


@app.command()
def schema(
    markdown: Annotated[bool, typer.Option("--markdown", help="all tables as a Markdown page")] = False,
    config_file: Annotated[bool, typer.Option("--config-file", help="JSON Schema of a pipeline's file")] = False,
    as_json: Json = False,
) -> None:
    """Every table's columns, types and units; or the JSON Schema of a pipeline's file."""
    from clickjoin import tables

    if config_file:
        typer.echo(json_schema())
    elif markdown:
        typer.echo(tables.markdown())
    else:
        console.schema(as_json)


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
) -> None:
    """Write seeded traffic as logs: two streams with everything that goes wrong in real ones."""
    from clickjoin.generate import Traffic, generate

    traffic = Traffic(
        clicks=clicks, queries=queries, rate=rate, duration=duration, zipf=zipf, click_delay=delay, disorder=disorder,
        duplicates=duplicates, late=late, late_seconds=late_seconds, orphans=orphans, broken=broken, payload=payload,
        files=files, seed=seed,
    )  # fmt: skip
    with console.progress("writing lines") as advance:
        truth = generate(folder, traffic, progress=advance)
    console.say(f"{folder}: {truth}")


def main() -> None:
    """Run the command line; a known error is one message on stderr and exit code 2 (bad configuration) or 3."""
    try:
        app(standalone_mode=True)
    except ClickjoinError as error:
        if "--json" in sys.argv:
            print(json.dumps({"error": type(error).__name__, "message": str(error)}))
        print(f"clickjoin: {error}", file=sys.stderr)
        sys.exit(3 if error.retryable else 2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
