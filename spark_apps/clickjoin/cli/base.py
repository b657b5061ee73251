"""The command line itself, its common options, and how a command comes by Spark and the tables."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickjoin import __version__
from clickjoin.cli import console
from clickjoin.model.errors import ConfigError

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.tables_port import Tables

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="`clickjoin`: run a pipeline, look at it, and fix it, from a shell.",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clickjoin {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="say the version and exit")
    ] = False,
) -> None:
    """What holds for every command."""


_CONFIG = typer.Option("--config", "-c", help="the pipeline's YAML file", envvar="CLICKJOIN_CONFIG")
Config = Annotated[Path, _CONFIG]
Json = Annotated[bool, typer.Option("--json", help="print JSON, for a machine to read")]


def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """A parameter of a command, by keyword."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def alone(act: Callable[..., None]) -> Callable[..., None]:
    """A command that is also the name of others: it is run where none of these is."""

    def run(context: typer.Context, config: Path | None, **given: Any) -> None:
        if context.invoked_subcommand:
            return
        if config is None:
            raise typer.BadParameter("it is missing: give the pipeline's YAML file", ctx=context, param_hint="--config")
        act(config=config, **given)

    given = [item for item in inspect.signature(act, eval_str=True).parameters.values() if item.name != "config"]
    own = [parameter(item.name, item.annotation, item.default) for item in given]
    context, config = parameter("context", typer.Context), parameter("config", Annotated[Path | None, _CONFIG], None)
    run.__signature__ = inspect.Signature([context, config, *own])  # type: ignore[attr-defined]
    return run


def connected(spark: tuple[str, str], pipeline: Pipeline) -> Any:
    """Where a pipeline's Spark session comes from: on a server, or in this process, which may drive a cluster.

    A server or a cluster is asked for its session at once, since what it sees of disks decides what is planned; Spark
    in this process is started by what first needs it.

    `spark`: the options --spark-connect and --master.

    Errors: ConfigError where both are given, or the address cannot be read.
    """
    from clickjoin.spark import session
    from clickjoin.spark.lazy import LazySession

    spark_connect, master = _one_of(*spark)
    if spark_connect and not spark_connect.startswith("sc://"):
        try:
            spark_connect = Path(spark_connect).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{spark_connect}: cannot be read ({error})", remedy="Give sc://… or a file that holds it"
            ) from error
    if spark_connect:
        with console.starting("connecting to Spark"):
            return session.connect(spark_connect)

    def start() -> Any:
        with console.starting("starting Spark"):
            return session.in_process(s3=pipeline.needs_s3, master=master)

    return start() if master else LazySession(start)


def _one_of(spark_connect: str, master: str) -> tuple[str, str]:
    """What is given on the command line goes before the environment. Errors: ConfigError where both are given alike."""
    of_environment = [
        os.environ.get("CLICKJOIN_SPARK_CONNECT") == spark_connect,
        os.environ.get("CLICKJOIN_SPARK_MASTER") == master,
    ]
    if not (spark_connect and master):
        return spark_connect, master
    if of_environment[0] == of_environment[1]:
        raise ConfigError(
            "--spark-connect (CLICKJOIN_SPARK_CONNECT) and --master (CLICKJOIN_SPARK_MASTER) are both given: either a "
            "server runs the batches, or this process is the driver of a cluster",
            remedy="Leave one of them out; a server that works on a cluster is started with that master itself",
        )
    return ("", master) if of_environment[0] else (spark_connect, "")


def load(config: Path) -> Pipeline:
    """The pipeline of a file. Errors: ConfigError."""
    from clickjoin.config import load as read

    return read(config)


def writable(config: Path) -> Pipeline:
    """The pipeline, if its lake can be written to: said before Spark takes its time to start. Errors: ConfigError."""
    from clickjoin.lake.requirements import require_writable

    pipeline = load(config)
    require_writable(pipeline.root)
    return pipeline


def small_tables(pipeline: Pipeline) -> Tables:
    """The pipeline's tables, as they can be read without Spark."""
    from clickjoin.engines.choose import open_tables

    return open_tables(pipeline)
