"""A job under spark-submit: arguments from a command line, the summary as the last line of output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from clickjoin.config.umask import keep_private
from clickjoin.jobs.all_jobs import require_job
from clickjoin.model.errors import ConfigError
from clickjoin.spark.failures import translate

_USAGE = "run_job.py JOB PIPELINE.yaml [REPLICA] [LEASE seconds, or empty] [ARGUMENTS as a JSON object]"


def main(given: Sequence[str]) -> None:
    """Run `JOB PIPELINE.yaml [REPLICA] [LEASE] [ARGUMENTS]`; prints the summary last, as JSON.

    Errors: ClickjoinError, also for what Spark or Delta raise, as far as it is known.
    """
    if not 2 <= len(given) <= 5:
        raise ConfigError(f"{len(given)} arguments", remedy=f"Give {_USAGE}")
    keep_private()
    try:
        print(json.dumps(_run(*given)), flush=True)
    except Exception as error:
        known = translate(error)
        if known is None or known is error:
            raise
        raise known from error


def _run(name: str, config: str, replica: str = "main", lease: str = "", arguments: str = "{}") -> dict[str, Any]:
    from clickjoin.spark.session import submitted

    job = require_job(name)
    pipeline = job.load(config)
    taken, seconds = job.parse(json.loads(arguments)), float(lease) if lease else None
    spark = submitted(f"clickjoin {name} {pipeline.pipeline}", s3=pipeline.needs_s3) if job.needs_spark else None
    try:
        return job.run(spark, pipeline, replica, lambda text: print(text, flush=True), seconds, **taken)
    finally:
        if spark is not None:
            spark.stop()
