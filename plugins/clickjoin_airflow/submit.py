"""Runs a job through spark-submit, in a process group of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from clickjoin.jobs.all_jobs import entry, require_job
from clickjoin.model import errors
from clickjoin.model.errors import ConfigError
from clickjoin.model.reporter import Reporter
from clickjoin.spark.session import ALONE, is_alone
from clickjoin_airflow.given import environment, properties

if TYPE_CHECKING:
    from clickjoin_airflow.job import JobRun

_GRACE = 3.0
_TAIL = 200
_RAISED = re.compile(rf"{re.escape(errors.__name__)}\.(\w+): (.*)")


class Submit:
    """`extra`: `spark_submit` (path), `master`, `conf` (name to value), `jars` (comma-separated), `env` (names of
    variables that the job gets besides those that Spark needs); none is a must.
    """

    def __init__(self, extra: Mapping[str, Any]) -> None:
        self._extra = extra
        self._master = str(extra.get("master") or os.environ.get("CLICKJOIN_SPARK_MASTER") or "local[*]")

    def run(self, run: JobRun, report: Reporter) -> dict[str, Any]:
        """Run a job; its last line is the summary. Its whole process group ends with it."""
        conf = self.conf()
        with properties(conf) as file:
            command = self.command(run, file)
            report(f"{shlex.join(command)}, with settings {', '.join(sorted(conf))}")
            return self._follow(command, report)

    def _follow(self, command: list[str], report: Reporter) -> dict[str, Any]:
        env = environment(self._extra.get("env") or (), alone=is_alone(self._master))
        process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        said, warned = (deque[str](maxlen=_TAIL) for _ in range(2))  # one each: an error of several lines stays whole
        with process:
            last = _follow(process, report, said, warned)
        if process.returncode:
            raise failure([*said, *warned], process.returncode)
        return dict(json.loads(last))

    def conf(self) -> dict[str, Any]:
        """Spark's settings: what the job itself does not set, and the connection's own, which go first."""
        quiet = {"spark.log.level": "WARN", "spark.ui.enabled": "false"}
        return quiet | (ALONE if is_alone(self._master) else {}) | dict(self._extra.get("conf") or {})

    def command(self, run: JobRun, conf: Path) -> list[str]:
        """The command line, which all users of the machine can see; `conf`: a file of settings, for none to see.

        Errors: ConfigError where spark-submit or the JARs are not there.
        """
        from clickjoin.spark.jars import jars

        tool = str(self._extra.get("spark_submit") or _package("pyspark") / "bin/spark-submit")
        if not shutil.which(tool):
            raise ConfigError(f"{tool}: cannot be run", remedy="Set spark_submit in the connection's extra")
        return [
            *_tied(),
            tool,
            *("--master", self._master, "--name", run.tag),
            *("--jars", str(self._extra.get("jars") or jars(require_job(run.job).load(run.config).needs_s3))),
            *("--properties-file", str(conf), "--load-spark-defaults"),
            str(entry()),
            *(run.job, run.config, run.replica),
            *_trailing(run),
        ]


def _trailing(run: JobRun) -> list[str]:
    """The arguments that may be left out, from the end."""
    lease = "" if run.lease is None else str(run.lease)
    if run.arguments:
        return [lease, json.dumps(dict(run.arguments))]
    return [lease] if lease else []


def failure(lines: Sequence[str], code: int) -> Exception:
    """The error that ended a job, as the last lines of its output name it."""
    for index in range(len(lines) - 1, -1, -1):
        found = _RAISED.match(lines[index])
        kind = getattr(errors, found[1], None) if found else None
        if found and kind:
            more = takewhile(lambda line: line.startswith("  "), lines[index + 1 :])
            return kind("\n".join([found[2], *more]))  # type: ignore[no-any-return]
    return RuntimeError(f"spark-submit ended with exit code {code}: " + " | ".join(lines[-3:]))


def _follow(process: subprocess.Popen[str], report: Reporter, said: deque[str], warned: deque[str]) -> str:
    """Report the lines of the process until it ends, or is ended; return its last line of standard output."""
    reader = Thread(target=_log, args=(process.stderr, report, warned), daemon=True)
    reader.start()
    try:
        last = _log(process.stdout or (), report, said, hold=True)
        process.wait()
    finally:
        _stop(process)
        reader.join(_GRACE)
    return last


def _log(lines: Iterable[str], report: Reporter, tail: deque[str], hold: bool = False) -> str:
    """Report lines as they come, and return the last; if `hold`, a last line that is the summary is not reported."""
    last, held = "", False
    for line in lines:
        if held:
            report(last)
        last = line.rstrip()
        tail.append(last)
        held = hold and last.startswith("{")
        if not held:
            report(last)
    return last


def _stop(process: subprocess.Popen[str]) -> None:
    """End the group, also what outlives its leader."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def _tied() -> list[str]:
    """What ends the command when this process is killed, and so cannot do it."""
    tool = shutil.which("setpriv")
    return [tool, "--pdeathsig", "TERM"] if tool else []


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.origin:
        raise ConfigError(f"Python package {name} is not installed beside Airflow", remedy="Run `make setup`")
    return Path(spec.origin).parent
