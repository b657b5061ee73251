"""The table of jobs: each has a file for spark-submit and a function of the common form; no file is beside it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from clickjoin import jobs
from clickjoin.apps import APPS
from clickjoin.errors import ConfigError

ROOT = Path(__file__).parents[2]


def submitted(file: Path) -> list[str]:
    """The jobs that a file runs."""
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    submits = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "submit"]
    return [ast.literal_eval(call.args[0]) for call in submits]


def test_every_job_has_its_file_and_every_file_its_job() -> None:
    files = {file.stem: submitted(file) for file in (ROOT / "spark_apps").glob("*.py")}
    assert files == {name: [name] for name in jobs.JOBS}
    assert {name: jobs.entry(name).name for name in jobs.JOBS} == {name: f"{name}.py" for name in jobs.JOBS}


@pytest.mark.parametrize("name", jobs.JOBS)
def test_every_job_takes_what_all_take(name: str) -> None:
    taken = list(inspect.signature(jobs.function(name)).parameters.values())
    assert [one.name for one in taken[:5]] == ["spark", "pipeline", "replica", "say", "lease"]
    assert all(one.kind is one.KEYWORD_ONLY for one in taken[5:])
    assert name in APPS


def test_a_name_that_is_none_and_a_file_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for ask in (jobs.require_job, jobs.entry, jobs.function):
        with pytest.raises(ConfigError, match=r"'close' is no job of clickjoin\. Name one of backfill, close_day, "):
            ask("close")
    monkeypatch.setattr(jobs, "_FILES", tmp_path)
    with pytest.raises(ConfigError, match=r"late\.py: is not there"):
        jobs.entry("late")
