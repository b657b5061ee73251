"""Runs a job through spark-submit, in a process group of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from clickjoin import errors
from clickjoin.errors import ConfigError

if TYPE_CHECKING:
    from clickjoin_airflow.job import Job, Say

_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
    "spark.log.level": "WARN",
}
_GRACE = 3.0
_TAIL = 200
_RAISED = re.compile(r"clickjoin\.errors\.(\w+): (.*)")


class Submit:
    """`extra`: `spark_submit` (path), `master`, `conf` (name to value), `jars` (comma-separated); none is a must."""

    def __init__(self, extra: Mapping[str, Any]) -> None:
        self._extra = extra

    def run(self, job: Job, say: Say) -> dict[str, Any]:
        """Run an app; its last line is the summary. Its whole process group ends with it."""
        command = self.command(job)
        say(shlex.join(command))
        process = subprocess.Popen(
            command, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        tail: deque[str] = deque(maxlen=_TAIL)
        with process:
            last = _follow(process, say, tail)
        if process.returncode:
            raise failure(list(tail), process.returncode)
        return dict(json.loads(last))

    def command(self, job: Job) -> list[str]:
        """The command line. Errors: ConfigError where spark-submit or the JARs are not there."""
        from clickjoin.session import jars

        extra = self._extra
        tool = str(extra.get("spark_submit") or _package("pyspark") / "bin/spark-submit")
        if not shutil.which(tool):
            raise ConfigError(f"{tool}: cannot be run", remedy="Set spark_submit in the connection's extra")
        conf = _CONF | dict(extra.get("conf") or {})
        return [
            *_tied(),
            tool,
            *("--master", str(extra.get("master") or "local[*]"), "--name", job.tag),
            *("--jars", str(extra.get("jars") or jars())),
            *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
            str(_package("clickjoin").parent / f"{job.app}.py"),
            *(job.config, job.replica),
            *_trailing(job),
        ]


def _trailing(job: Job) -> list[str]:
    """The arguments that may be left out, from the end."""
    lease = "" if job.lease is None else str(job.lease)
    if job.arguments:
        return [lease, json.dumps(dict(job.arguments))]
    return [lease] if lease else []


def failure(lines: Sequence[str], code: int) -> Exception:
    """The error that ended an app, as its last words name it."""
    for index in range(len(lines) - 1, -1, -1):
        found = _RAISED.match(lines[index])
        kind = getattr(errors, found[1], None) if found else None
        if found and kind:
            more = takewhile(lambda line: line.startswith("  "), lines[index + 1 :])
            return kind("\n".join([found[2], *more]))  # type: ignore[no-any-return]
    return RuntimeError(f"spark-submit ended with exit code {code}: " + " | ".join(lines[-3:]))


def _follow(process: subprocess.Popen[str], say: Say, tail: deque[str]) -> str:
    """Say what the process says until it ends, or is ended; return its last line."""
    reader = Thread(target=_log, args=(process.stderr, say, tail), daemon=True)
    reader.start()
    try:
        last = _log(process.stdout or (), say, tail, hold=True)
        process.wait()
    finally:
        _stop(process)
        reader.join(_GRACE)
    return last


def _log(lines: Iterable[str], say: Say, tail: deque[str], hold: bool = False) -> str:
    """Say lines as they come, but the last if `hold`, and return the last."""
    last: str | None = None
    for line in lines:
        text = line.rstrip()
        tail.append(text)
        if not hold:
            say(text)
        elif last is not None:
            say(last)
        last = text
    return last or ""


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


def _environment() -> dict[str, str]:
    """This environment without Airflow's secrets, and with the Python that runs here."""
    unwanted = ("AIRFLOW", "_AIRFLOW", "SPARK_CONNECT")
    env = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    env.setdefault("PYSPARK_PYTHON", sys.executable)
    env.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return env


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.origin:
        raise ConfigError(f"Python package {name} is not installed beside Airflow", remedy="Run `make setup`")
    return Path(spec.origin).parent
