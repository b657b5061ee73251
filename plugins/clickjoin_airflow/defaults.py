"""What clickjoin's DAGs have in common, and the DAG that stands in for a file that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, BaseOperator, Param
from airflow.sdk.exceptions import AirflowFailException

from clickjoin_airflow import alerts

if TYPE_CHECKING:
    from airflow.sdk import Context

    from clickjoin_airflow.pipelines import BrokenFile, PipelineFile

# A lost server may stay away for a night: a try a minute. What cannot be fixed, or is unknown, ends sooner (see
# `verdict`); then Airflow pauses the DAG, as `@continuous` would fail again every few seconds.
_ARGS = {
    "owner": "clickjoin",
    "retries": 1440,
    "retry_delay": timedelta(seconds=2),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=1),
    "on_failure_callback": alerts.failed,
    "on_retry_callback": alerts.retrying,
}
_FAILURES = 3
# Without a start date the second run of `@continuous` has the logical date of the first, and is never made.
_START = datetime(2025, 1, 1, tzinfo=UTC)
_LEASES = 5

LEASE = "{{ params.lease or '' }}"
_OWN = os.environ.get("CLICKJOIN_REPLICA", "main")
REPLICA = f"{{{{ params.replica or var.value.get('clickjoin_replica', '{_OWN}') }}}}"


def settings(
    app: str, pipeline: PipelineFile, leased: bool = True, form: Mapping[str, Param] | None = None
) -> dict[str, Any]:
    """Arguments of the DAG that runs an app on a pipeline: one run at a time. `form`: the app's own fields."""
    # A batch under way when the lease ends is brought to its end: after an outage that can be a large one.
    limit = timedelta(seconds=_LEASES * pipeline.lease, minutes=10)
    return {
        "dag_id": f"clickjoin_{app}__{pipeline.name}",
        "description": f"{app} of pipeline {pipeline.name}; tables in {pipeline.tables}",
        "default_args": _ARGS | {"execution_timeout": limit, "max_active_tis_per_dag": 1},
        "dagrun_timeout": timedelta(days=1),
        "start_date": _START,
        "catchup": False,
        "max_active_runs": 1,
        "max_consecutive_failed_dag_runs": _FAILURES,
        "params": {**(form or {}), **_form(pipeline, leased)},
        "tags": ["clickjoin", app, pipeline.name],
    }


def _form(pipeline: PipelineFile, leased: bool) -> dict[str, Param]:
    replica = Param(
        None,
        type=["null", "string"],
        pattern=r"^[a-z][a-z0-9_-]{0,62}$",
        title="Replica",
        description="Which replica works. Empty: variable `clickjoin_replica`, else CLICKJOIN_REPLICA, else `main`.",
    )
    lease = Param(
        None,
        type=["null", "number"],
        minimum=1,
        maximum=_LEASES * pipeline.lease,
        title="Lease",
        description=f"Seconds of work before the task returns. Empty: the pipeline's own, {pipeline.lease:g} s.",
    )
    return {"lease": lease, "replica": replica} if leased else {"replica": replica}


class BrokenPipelineOperator(BaseOperator):
    """Fails with what is wrong in a pipeline's file."""

    def __init__(self, *, problem: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.problem = problem

    def execute(self, context: Context) -> None:
        """Say it."""
        raise AirflowFailException(self.problem)


def _verbatim(text: str) -> str:
    """Text as Markdown that is shown as it is, whatever ends a line in it."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def placeholder(app: str, file: BrokenFile) -> DAG:
    """A DAG for a broken file: never scheduled, it says what is wrong. A run that waits says so too."""
    with DAG(
        f"clickjoin_{app}__{file.name}",
        description=f"{file.path.name} cannot be read",
        schedule=None,
        default_args={"owner": "clickjoin"},
        tags=["clickjoin", app, "broken"],
        doc_md=f"### This pipeline's file cannot be read\n\n{_verbatim(file.problem)}\n",
    ) as dag:
        # The task is called as in the whole DAG, so that a run which was under way finds it.
        BrokenPipelineOperator(task_id=app, problem=file.problem)
    return dag
