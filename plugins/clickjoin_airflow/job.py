"""One run of a job, and who carries it out: a Spark Connect server or spark-submit, as the connection says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from clickjoin.model.errors import ConfigError
from clickjoin.model.reporter import Reporter


@dataclass(frozen=True)
class JobRun:
    """One run of a job; `lease` in seconds (None: the pipeline's own), `tag` names it on the server.

    `arguments`: what else the job takes, by keyword.
    """

    job: str
    config: str
    replica: str
    lease: float | None
    tag: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Runner(Protocol):
    """Carries a run out. Whatever is raised in it, by a signal too, leaves nothing behind that still works."""

    def run(self, run: JobRun, report: Reporter) -> dict[str, Any]:
        """Run it, report a line about each batch, return the summary."""
        ...


def settings(connection: Any) -> dict[str, Any]:
    """A connection's extra, with the fields beside it: the password is the `token`, host and port are the `url`.

    A host may be a whole address (sc://…); what the extra itself says goes first.
    """
    extra: dict[str, Any] = dict(connection.extra_dejson)
    if (host := connection.host) and "url_file" not in extra:
        extra.setdefault("url", host if "://" in host else f"sc://{host}:{connection.port or 15002}")
    if connection.password:
        extra.setdefault("token", connection.password)
    return extra


def runner(extra: Mapping[str, Any]) -> Runner:
    """The runner that a connection's extra names. Errors: ConfigError."""
    mode = extra.get("mode", "connect")
    if mode == "connect":
        from clickjoin_airflow.connect import Connect

        return Connect(extra)
    if mode == "submit":
        from clickjoin_airflow.submit import Submit

        return Submit(extra)
    raise ConfigError(f"the connection's extra has mode {mode!r}", remedy="Write connect or submit")
