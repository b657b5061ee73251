"""The operator behind all of clickjoin's tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, BaseOperator, Connection
from airflow.sdk.exceptions import AirflowFailException

from clickjoin.config.umask import keep_private
from clickjoin.jobs.all_jobs import require_job
from clickjoin.jobs.summary_text import summary_lines
from clickjoin_airflow import metrics
from clickjoin_airflow.job import JobRun, runner, settings
from clickjoin_airflow.lineage import lineage
from clickjoin_airflow.links import LogLink, TablesLink
from clickjoin_airflow.verdict import RetryByCause, Stopped, judge

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

FAILURE = "clickjoin_failure"  # XCom: why the task's last try failed


class ClickjoinOperator(BaseOperator):
    """Runs a job (of `clickjoin.jobs.all_jobs.JOBS`) on the pipeline in file `config`, and returns its summary.

    The connection says where: see `Connect` and `Submit`. `lease` is in seconds; where it is empty the pipeline's own
    holds. `tables` is where the tables are, for people to see. Outlets get an event only if rows were joined, or a date
    has changed. `arguments` are the job's own, by keyword, as text where they are templates. A summary with `ok: false`
    fails the task for good. Errors: ConfigError for a job or an argument that does not exist.
    """

    # Not `config` and `tables`: what a pipeline's file says is text, and never a template.
    template_fields: Sequence[str] = ("replica", "lease", "arguments")
    operator_extra_links = (TablesLink(), LogLink())
    ui_color = "#e3f1e4"

    def __init__(
        self,
        *,
        job: str,
        config: str,
        replica: str = "main",
        lease: float | str | None = None,
        tables: str = "",
        arguments: Mapping[str, Any] | None = None,
        conn_id: str = "clickjoin_spark",
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("retry_policy", RetryByCause())
        super().__init__(**kwargs)
        self.job = require_job(job).name
        self.config = config
        self.replica = replica
        self.lease = lease
        self.tables = tables
        self.arguments = dict(arguments or {})
        for name in self.arguments:
            require_job(job).argument(name)
        self.conn_id = conn_id
        self._at_work = False
        self._summary: dict[str, Any] = {}

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the job. Errors: AirflowFailException for what no retry can fix."""
        ti = context["ti"]
        for link in self.operator_extra_links:  # Airflow sets them at the end, and this task may run for long
            ti.xcom_push(key=link.xcom_key, value=link.get_link(self, ti_key=ti))  # type: ignore[arg-type]
        self.log.info("%s of %s, replica %s; tables: %s", self.job, self.config, self.replica, self.tables)
        self._at_work = True
        try:
            keep_private()  # a task is a process of its own
            summary = runner(settings(Connection.get(self.conn_id))).run(self._run(context), self.log.info)
        except Exception as error:
            verdict = judge(error)
            with suppress(Exception):  # the status page shows it; an error there must not hide this one
                ti.xcom_push(key=FAILURE, value=verdict.reason)
            if verdict.again:
                raise
            raise AirflowFailException(verdict.reason) from error
        finally:
            self._at_work = False
        self._summary = summary
        for line in summary_lines(self.job, summary):
            self.log.info("%s", line)
        self._emit(summary)
        self._announce(context, summary)
        return self._returned(ti, summary)

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """The tables that the job reads and writes; OpenLineage's provider asks for them."""
        return lineage(self.job, self.tables, {}, self._upstreams())

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """The same, with the rows that were joined."""
        return lineage(self.job, self.tables, self._summary, self._upstreams())

    def _upstreams(self) -> list[str]:
        return [str(inlet.uri) for inlet in self.inlets if isinstance(inlet, Asset)]

    def on_kill(self) -> None:
        """Leave the job from within, so that it cleans up on its way out."""
        if self._at_work:
            self._at_work = False  # a second signal must not cut the cleaning up short
            raise Stopped("asked to stop")

    def _run(self, context: Context) -> JobRun:
        ti = context["ti"]
        lease = None if self.lease in (None, "", "None") else float(str(self.lease))
        tag = f"{ti.dag_id}/{ti.run_id}/{ti.try_number}"
        job = require_job(self.job)
        arguments = job.parse(self.arguments)
        # Those that make a lake where none is must not do so again when it is not mounted, or was moved. One that only
        # looks may come before the first that makes it.
        if job.takes("lake_exists"):
            arguments["lake_exists"] = bool(context.get("prev_start_date_success"))
        return JobRun(job.name, self.config, self.replica, lease, tag, arguments)

    def _returned(self, ti: Any, summary: dict[str, Any]) -> dict[str, Any]:
        if summary.get("ok") is False:  # it has done all it could, and no other try would find it better
            ti.xcom_push(key="return_value", value=summary)
            raise AirflowFailException(str(summary.get("verdict") or "its summary says that something is wrong"))
        return summary

    def _emit(self, summary: dict[str, Any]) -> None:
        metrics.emit(self.job, PurePosixPath(self.tables).name, self.replica, summary)

    def _announce(self, context: Context, summary: dict[str, Any]) -> None:
        """Tell who waits for the outlets what was added to them, or which date of theirs is complete."""
        if not summary.get("changed", summary.get("joined")):
            self.outlets = []  # what a task reports is read from here when it has succeeded
            return
        counts = {name: value for name, value in summary.items() if isinstance(value, int | float)}
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra.update(counts | {"replica": self.replica})
            if "date" in summary:
                context["outlet_events"][outlet].add_partitions(summary["date"])
