"""The table of jobs: the names that the command line, Airflow and spark-submit know, and what each runs.

It imports nothing but the standard library, so that a DAG file may read it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from clickjoin.errors import ConfigError

_DATES = "clickjoin.dates.jobs"
# Name to module; the function in it is called as the job is, and so is the file for spark-submit.
JOBS = {
    **dict.fromkeys(("join", "retry", "redrive", "gc", "reshard", "rebuild", "verify", "quality"), "clickjoin.apps"),
    **dict.fromkeys(("close_day", "backfill", "days_of", "late"), _DATES),
}
_FILES = Path(__file__).resolve().parents[1]


def require_job(name: str) -> str:
    """The name, if a job has it. Errors: ConfigError that lists those there are."""
    if name not in JOBS:
        raise ConfigError(f"{name!r} is no job of clickjoin", remedy=f"Name one of {', '.join(sorted(JOBS))}")
    return name


def entry(name: str) -> Path:
    """The file that spark-submit runs for a job. Errors: ConfigError for an unknown name, or a file that is gone."""
    file = _FILES / f"{require_job(name)}.py"
    if not file.is_file():
        raise ConfigError(f"{file}: is not there", remedy="Install spark_apps/ whole, beside the package clickjoin")
    return file


def function(name: str) -> Callable[..., dict[str, Any]]:
    """What a job runs; its module is loaded now. Errors: ConfigError for an unknown name."""
    found: Callable[..., dict[str, Any]] = getattr(import_module(JOBS[require_job(name)]), name)
    return found
