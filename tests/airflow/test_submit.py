"""spark-submit, played by a shell script: lines, summary, errors, and what a kill leaves behind."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clickjoin.model import errors
from clickjoin_airflow.job import JobRun, runner
from clickjoin_airflow.submit import failure
from clickjoin_airflow.verdict import Stopped

JOB = JobRun("join", "/pipelines/clicks.yaml", "main", 5.0, "dag/run/1")


def script(folder: Path, body: str) -> dict[str, object]:
    path = folder / "spark-submit"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return {"mode": "submit", "spark_submit": str(path), "master": "local[1]", "jars": "a.jar", "conf": {"spark.x": 1}}


def test_lines_go_to_the_log_and_the_last_is_the_summary(tmp_path: Path) -> None:
    said: list[str] = []
    extra = script(tmp_path, 'echo "$@"; echo second; echo warn >&2; echo \'{"joined": 3}\'')
    assert runner(extra).run(JOB, said.append) == {"joined": 3}
    shown = next(line for line in said[1:] if line.startswith("--master"))
    assert shown.startswith("--master local[1] --name dag/run/1 --jars a.jar --properties-file ")
    assert shown.endswith("/spark_apps/run_job.py join /pipelines/clicks.yaml main 5.0")
    assert {"second", "warn"} <= set(said)
    assert '{"joined": 3}' not in said


def test_a_line_is_said_at_once(tmp_path: Path) -> None:
    class Heard(Exception):
        pass

    def report_line(line: str) -> None:
        if line == "join 1":
            raise Heard

    begun = time.monotonic()
    with pytest.raises(Heard):
        runner(script(tmp_path, "echo join 1; sleep 60")).run(JOB, report_line)
    assert time.monotonic() - begun < 30


def test_the_apps_own_error_comes_out(tmp_path: Path) -> None:
    body = "echo 'clickjoin.model.errors.ConfigError: p.yaml:'; echo '  lake: is missing. Add'; echo end >&2; exit 1"
    with pytest.raises(errors.ConfigError, match=r"p.yaml:\n  lake: is missing. Add"):
        runner(script(tmp_path, body)).run(JOB, lambda _: None)


def test_other_ends(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"exit code 9: .*out of memory"):
        runner(script(tmp_path, "echo out of memory >&2; exit 9")).run(JOB, lambda _: None)
    with pytest.raises(errors.ConfigError, match="cannot be run"):
        runner({"mode": "submit", "spark_submit": str(tmp_path / "none"), "jars": "a"}).run(JOB, lambda _: None)
    with pytest.raises(errors.ConfigError, match="mode 'yarn'"):
        runner({"mode": "yarn"})


def test_failure_takes_the_last_error_named() -> None:
    lines = ["clickjoin.model.errors.ConfigError: first", "clickjoin.model.errors.CommitConflict: second", "other"]
    assert isinstance(failure(lines, 1), errors.CommitConflict)
    assert isinstance(failure(["clickjoin.model.errors.NoSuch: x"], 1), RuntimeError)
    assert isinstance(failure([], 1), RuntimeError)


def runs(file: Path) -> bool:
    """Whether the process whose number is in the file is alive."""
    status = Path("/proc") / file.read_text().strip() / "status"
    return status.exists() and "Z (zombie)" not in status.read_text()


@pytest.fixture
def stopped_soon() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Stopped("asked to stop")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 1)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv of util-linux")
def test_a_killed_task_leaves_nothing_behind(tmp_path: Path) -> None:
    extra = script(tmp_path, f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/leader; exec sleep 60")
    code = f"from clickjoin_airflow.job import JobRun, runner; runner({extra}).run({JOB}, print)"
    task = subprocess.Popen([sys.executable, "-c", code])
    while not (tmp_path / "leader").exists():
        time.sleep(0.1)
    task.kill()
    task.wait()
    deadline = time.monotonic() + 10
    while runs(tmp_path / "leader"):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.usefixtures("stopped_soon")
def test_a_kill_ends_the_whole_group(tmp_path: Path) -> None:
    # The leader ignores SIGTERM, and its child would outlive it.
    extra = script(
        tmp_path, f"trap '' TERM; sleep 60 & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/leader; wait; wait"
    )
    begun = time.monotonic()
    with pytest.raises(Stopped):
        runner(extra).run(JOB, lambda _: None)
    assert time.monotonic() - begun < 6
    assert not runs(tmp_path / "child")
    assert not runs(tmp_path / "leader")
