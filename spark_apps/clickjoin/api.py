"""A pipeline in Python: what the commands of the same names do, as plain data. `clickjoin.open` enters here."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.chain.links import beside
from clickjoin.config import load
from clickjoin.config.umask import umask
from clickjoin.engines.choose import open_tables
from clickjoin.event_store.bad_input import FLOOD
from clickjoin.jobs.all_jobs import require_job
from clickjoin.lake.requirements import require_writable
from clickjoin.model.names import joining_name
from clickjoin.model.reporter import Reporter
from clickjoin.report.chain import chain_status, explain_chain
from clickjoin.report.newest_ids import frequent_ids
from clickjoin.report.processing import process_status
from clickjoin.report.status import backlog, status
from clickjoin.spark.lazy import lazy

if TYPE_CHECKING:
    from clickjoin.spark.lazy import Session


class PipelineHandle:
    """A pipeline that was opened by its file; see `clickjoin.open`.

    Summaries are those that the commands print with `--json`. Errors of the methods: ClickjoinError.
    """

    def __init__(self, file: str | PathLike[str], replica: str, spark: Session | None, report: Reporter | None) -> None:
        self.pipeline, self.replica = load(Path(file)), joining_name(replica)
        self._file, self._spark = Path(file).absolute(), lazy(spark or self._start)
        self._report = report or (lambda _: None)

    def drain(self, *, check: bool = True) -> dict[str, Any]:
        """Join all that the sources hold; `ok` is False where the sums do not agree. `check`: count every id."""
        require_writable(self.pipeline.root)
        return self._job("drain", check=check)

    def run(self, seconds: float | None = None) -> dict[str, Any]:
        """Join new events and retry pending ones, for so many seconds; None: until SIGINT or SIGTERM."""
        require_writable(self.pipeline.root)
        return self._job("run", seconds)

    def verify(
        self, since: str | None = None, until: str | None = None, *, repair: bool | None = None
    ) -> dict[str, Any]:
        """Prove what is promised of events from `since` to before `until` (ISO 8601); `ok` is False if a fault is left.

        By default as the pipeline's file says (section `verify`).
        """
        return self._job("verify", since=since, until=until, repair=repair)

    def status(self, last: int = 10) -> dict[str, Any]:
        """Lag, backlog, counts and the `last` batches of every replica. Starts no Spark."""
        pipelines = beside(self._file)  # it says, too, in which store each of their places is
        delta = open_tables(self.pipeline)
        found = status(delta, last)
        for name in found["replicas"] or ["main"]:
            part = found["replicas"].setdefault(name, {"last": [], "totals": {}})
            floods = [problem for problem in part.get("problems", []) if problem["kind"] == FLOOD]
            part |= backlog(self.pipeline, delta, name)
            part["problems"] += floods
        found["frequent_ids"] = frequent_ids(self.pipeline, delta)
        found["chain"] = chain_status(pipelines)
        if self.pipeline.process:
            found["processing"] = process_status(self.pipeline)
        return found

    def explain(self, event_id: str) -> dict[str, Any]:
        """Where an event is (`state`, unknown if nowhere), and its whole way (`history`). Starts no Spark."""
        return explain_chain(beside(self._file), event_id)

    def _job(self, name: str, lease: float | None = None, **arguments: Any) -> dict[str, Any]:
        before = os.umask(umask())  # what holds records is private, as it is made by clickjoin's own processes
        try:
            return require_job(name).run(self._spark, self.pipeline, self.replica, self._report, lease, **arguments)
        finally:
            os.umask(before)

    def _start(self) -> Any:
        from clickjoin.spark.session import in_process

        return in_process(s3=self.pipeline.needs_s3)
