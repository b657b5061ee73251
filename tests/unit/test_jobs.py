"""The table of jobs: each is a function that takes what the table says, on tables that exist; docs/jobs.md shows it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from clickjoin.cli.main import app
from clickjoin.jobs import all_jobs
from clickjoin.jobs.submit import main
from clickjoin.model.errors import ConfigError
from clickjoin.schemas import BY_NAME
from clickjoin.schemas.process import PROCESS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", all_jobs.JOBS)
def test_every_job_takes_what_the_table_says(name: str) -> None:
    job = all_jobs.JOBS[name]
    taken = list(inspect.signature(job.function()).parameters.values())
    shared = [
        "spark",
        "several" if job.several else "pipeline",
        "replica",
        "report",
        *(["lease"] if job.leased else []),
    ]
    assert [one.name for one in taken[: len(shared)]] == shared
    own = taken[len(shared) :]
    assert all(one.kind is one.KEYWORD_ONLY for one in own)
    assert [(one.name, one.default) for one in own] == [
        (item.name, inspect.Parameter.empty if item.required else item.default) for item in job.arguments
    ]


@pytest.mark.parametrize("job", all_jobs.JOBS.values(), ids=lambda job: job.name)
def test_every_job_names_tables_and_commands_that_exist(job: all_jobs.Job) -> None:
    assert {*job.reads, *job.writes} <= BY_NAME.keys() | {f"process/{table.name}" for table in PROCESS}
    commands = {command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands}
    groups = {
        f"{group.name} {command.name}"
        for group in app.registered_groups
        for command in group.typer_instance.registered_commands
    }
    alone = {group.name for group in app.registered_groups if group.typer_instance.registered_callback}
    assert {*job.commands} <= commands | groups | alone


def test_the_table_is_cheap_to_import() -> None:
    script = "import sys; import clickjoin.jobs.all_jobs; print([name for name in sys.modules if '.' not in name])"
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": f"{ROOT}/spark_apps"}, capture_output=True)
    loaded = set(eval(done.stdout))
    assert (
        not loaded
        - sys.stdlib_module_names
        - {"clickjoin", "sitecustomize"}
        - {name for name in loaded if name.startswith(("_", "distutils"))}
    )


def test_the_page_is_what_the_command_prints() -> None:
    page = ROOT / "docs/jobs.md"
    assert page.read_text() == f"{all_jobs.markdown()}\n", "print it again: clickjoin schema --jobs > docs/jobs.md"


def test_one_file_serves_all_jobs() -> None:
    assert [file.name for file in (ROOT / "spark_apps").glob("*.py")] == [all_jobs.entry().name]


def test_a_name_that_is_none_and_a_file_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for ask in (all_jobs.require_job, lambda name: main([name, "pipeline.yaml"])):
        with pytest.raises(ConfigError, match=r"'close' is no job of clickjoin\. Name one of backfill, close_day, "):
            ask("close")
    monkeypatch.setattr(all_jobs, "_ENTRY", tmp_path / "run_job.py")
    with pytest.raises(ConfigError, match=r"run_job\.py: is not there"):
        all_jobs.entry()


def test_a_command_line_without_a_pipeline() -> None:
    with pytest.raises(ConfigError, match=r"1 arguments\. Give run_job.py JOB PIPELINE.yaml"):
        main(["join"])
