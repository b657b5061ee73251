"""Runs a job on a Spark Connect server, in a session of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from airflow.sdk.log import mask_secret

from clickjoin.jobs.all_jobs import require_job
from clickjoin.model.errors import ConfigError, ServerLost
from clickjoin.model.reporter import Reporter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clickjoin_airflow.job import JobRun

# Seconds. Airflow gives a task that it kills five.
_GRACE = 4.0


class Connect:
    """`extra`: `url` (sc://…), or `url_file`, which holds it. That is read at each try: a new server has a new one.

    `token` (the connection's password) and `use_ssl` are added to an address that has none. No file is needed, so that
    a worker on another host has all of it from the connection.
    """

    def __init__(self, extra: Mapping[str, Any]) -> None:
        self._url, self._file = extra.get("url"), extra.get("url_file")
        self._more = {
            "use_ssl": "true" if _is_true(extra.get("use_ssl")) else "",
            "token": str(extra.get("token") or ""),
        }

    def run(self, run: JobRun, report: Reporter) -> dict[str, Any]:
        """Run a job; the session ends with it, and whatever it has under way if it fails."""
        from clickjoin.spark.session import connect

        job = require_job(run.job)
        pipeline = job.load(run.config)
        if not job.needs_spark:
            return job.run(None, pipeline, run.replica, report, run.lease, **run.arguments)
        session, is_finished = connect(self.url()), False
        try:
            session.addTag(run.tag)
            summary = job.run(session, pipeline, run.replica, report, run.lease, **run.arguments)
            is_finished = True
            return summary
        finally:
            _close(session, interrupt=not is_finished)

    def url(self) -> str:
        """Where the server is now. Errors: ConfigError, ServerLost."""
        url = self._url
        if not url and self._file:
            try:
                url = Path(self._file).read_text(encoding="utf-8").strip()
            except OSError as error:
                raise ServerLost(f"{self._file}: no server has left its address there ({error.strerror})",
                                 remedy="Start it (`make up`)") from error  # fmt: skip
        if not url:
            raise ConfigError("the connection names no server", remedy="Add a host, or url or url_file to its extra")
        return _whole(str(url), self._more)


def _is_true(said: Any) -> bool:
    """What a connection that is written as a URI says as text, too."""
    return said is True or str(said).lower() in ("true", "1", "yes")


def _whole(url: str, more: Mapping[str, str]) -> str:
    """An address with all of its parameters. Airflow hides the token in all logs, as it is and as it is written."""
    address, _, rest = url.partition(";")
    given = dict(part.partition("=")[::2] for part in rest.split(";") if part)
    for name, value in more.items():
        if value:
            given.setdefault(name, quote(value, safe=""))
    for token in {given.get("token", ""), unquote(given.get("token", ""))} - {""}:
        mask_secret(token)
    parameters = "".join(f";{name}={value}" for name, value in given.items())
    return f"{address.rstrip('/')}/{parameters}" if parameters else address


def _close(session: SparkSession, *, interrupt: bool) -> None:
    """Free what the session holds on the server. A server that hangs must not hold up this task, nor its end."""

    from clickjoin.spark.session import be_patient

    def close() -> None:
        if interrupt:
            be_patient(session, 0)
            with suppress(Exception):
                session.interruptAll()
        session.stop()

    closing = Thread(target=close, daemon=True)
    closing.start()
    closing.join(_GRACE)
