"""The command line itself, its common options, and how a command comes by Spark and the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from clickjoin.cli import console
from clickjoin.config import Pipeline, load
from clickjoin.jobs.all_jobs import JOBS
from clickjoin.lake.requirements import require_writable
from clickjoin.model.errors import ConfigError
from clickjoin.model.replica import joining_name, replica_name

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="`clickjoin`: run a pipeline, look at it, and fix it, from a shell.",
)
Config = Annotated[Path, typer.Option("--config", "-c", help="the pipeline's YAML file", envvar="CLICKJOIN_CONFIG")]
Json = Annotated[bool, typer.Option("--json", help="print JSON, for a machine to read")]
Replica = Annotated[
    str, typer.Option(help="name of this running copy", envvar="CLICKJOIN_REPLICA", callback=replica_name)
]
Joining = Annotated[
    str, typer.Option(help="name of this running copy", envvar="CLICKJOIN_REPLICA", callback=joining_name)
]
SparkConnect = Annotated[
    str, typer.Option(help="Spark Connect address (sc://…), or a file that holds it", envvar="CLICKJOIN_SPARK_CONNECT")
]


def connected(spark_connect: str, pipeline: Pipeline) -> Any:
    """A Spark session for a pipeline: on a server, or in this process.

    Errors: ConfigError where the address cannot be read.
    """
    from clickjoin.spark import session

    if spark_connect and not spark_connect.startswith("sc://"):
        try:
            spark_connect = Path(spark_connect).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{spark_connect}: cannot be read ({error})", remedy="Give sc://… or a file that holds it"
            ) from error
    with console.starting("starting Spark" if not spark_connect else "connecting to Spark"):
        return session.connect(spark_connect) if spark_connect else session.in_process(s3=pipeline.needs_s3)


def run_job(
    name: str, pipeline: Pipeline, replica: str = "", *, spark_connect: str = "", as_json: bool, **arguments: Any
) -> dict[str, Any]:
    """Run a job of the table, on a session of its own if it needs one; returns its summary."""
    job = JOBS[name]
    spark = connected(spark_connect, pipeline) if job.needs_spark else None
    return job.run(spark, pipeline, replica, console.batch_line(as_json), **arguments)


def writable(config: Path) -> Pipeline:
    """The pipeline, if its lake can be written to: said before Spark takes its time to start. Errors: ConfigError."""
    pipeline = load(config)
    require_writable(pipeline.root)
    return pipeline


def small_tables(pipeline: Pipeline) -> Any:
    """The pipeline's tables, as they can be read without Spark."""
    from clickjoin.lake import DeltaTables

    return DeltaTables(pipeline.root)
