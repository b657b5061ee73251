"""Runs a job on a Spark Connect server, in a session of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from airflow.sdk.log import mask_secret

from clickjoin.errors import ConfigError, ServerLost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clickjoin_airflow.job import Job, Say

# Seconds. Airflow gives a task that it kills five.
_GRACE = 4.0


class Connect:
    """`extra`: `url` (sc://…), or `url_file`, which holds it. That is read at each try: a new server has a new one."""

    def __init__(self, extra: Mapping[str, Any]) -> None:
        self._url, self._file = extra.get("url"), extra.get("url_file")

    def run(self, job: Job, say: Say) -> dict[str, Any]:
        """Run an app; the session ends with it, and whatever it has under way if it fails."""
        from clickjoin.apps import APPS
        from clickjoin.config import load
        from clickjoin.session import connect

        pipeline = load(job.config)
        session, whole = connect(self.url()), False
        try:
            session.addTag(job.tag)
            summary = APPS[job.app](session, pipeline, job.replica, say, job.lease, **job.arguments)
            whole = True
            return summary
        finally:
            _close(session, interrupt=not whole)

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
            raise ConfigError("the connection's extra names no server", remedy="Add url, or url_file")
        mask_secret(str(url).partition("token=")[2])
        return str(url)


def _close(session: SparkSession, *, interrupt: bool) -> None:
    """Free what the session holds on the server. A server that hangs must not hold up this task, nor its end."""

    from clickjoin.session import be_patient

    def close() -> None:
        if interrupt:
            be_patient(session, 0)
            with suppress(Exception):
                session.interruptAll()
        session.stop()

    closing = Thread(target=close, daemon=True)
    closing.start()
    closing.join(_GRACE)
