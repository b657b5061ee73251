"""What clickjoin's DAGs have in common, and the DAG that stands in for a file that cannot be read."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, BaseOperator, Param
from airflow.sdk.exceptions import AirflowFailException

from clickjoin.jobs.all_jobs import require_job
from clickjoin_airflow import alerts
from clickjoin_airflow.conf import require_known

if TYPE_CHECKING:
    from airflow.sdk import Context

    from clickjoin.jobs.job import Argument, Job
    from clickjoin_airflow.pipelines import BrokenFile, PipelineFile

# A lost server may stay away for a night: a try a minute. What cannot be fixed, or is unknown, ends sooner (see
# `verdict`); then the DAG is paused, as it would fail again with every lease (see `pausing`).
_ARGS = {
    "owner": "clickjoin",
    "retries": 1440,
    "retry_delay": timedelta(seconds=2),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=1),
    "on_failure_callback": alerts.failed,
    "on_retry_callback": alerts.retrying,
    "pre_execute": require_known,
}
_FAILURES = 3
# Long ago: runs are due from then on, and none of the past is made up for (`catchup`).
_START = datetime(2025, 1, 1, tzinfo=UTC)
_LEASES = 5

LEASE = "{{ params.lease or '' }}"
_OWN = os.environ.get("CLICKJOIN_REPLICA", "main")
REPLICA = f"{{{{ params.replica or var.value.get('clickjoin_replica', '{_OWN}') }}}}"


def settings(job: str, pipeline: PipelineFile, *, dag: str = "") -> dict[str, Any]:
    """Arguments of the DAG that runs a job on a pipeline, one run at a time; its form asks for what the job takes.

    `dag`: the DAG's name, where it is not the job's.
    """
    name = dag or job
    # A batch under way when the lease ends is brought to its end: after an outage that can be a large one.
    limit = timedelta(seconds=_LEASES * pipeline.lease, minutes=10)
    return {
        "dag_id": f"clickjoin_{name}__{pipeline.name}",
        "description": f"{name} of pipeline {pipeline.name}; tables in {pipeline.tables}",
        "default_args": _ARGS | {"execution_timeout": limit, "max_active_tis_per_dag": 1},
        "dagrun_timeout": timedelta(days=1),
        "start_date": _START,
        "catchup": False,
        "max_active_runs": 1,
        "max_consecutive_failed_dag_runs": _FAILURES,
        "params": _form(require_job(job), pipeline),
        "tags": ["clickjoin", name, pipeline.name],
    }


def overlapping(job: str, pipeline: PipelineFile) -> dict[str, Any]:
    """The same where a run is started as the lease of the one before ends, and takes its place once it is ready."""
    found = settings(job, pipeline)
    found["default_args"] |= {"max_active_tis_per_dag": 2}
    return found | {"schedule": timedelta(seconds=pipeline.lease), "max_active_runs": 2}


def task(job: str, pipeline: PipelineFile, **more: Any) -> dict[str, Any]:
    """Arguments of the ClickjoinOperator that runs a job with what the DAG's form says. `more`: further ones."""
    known = require_job(job)
    asked = {item.name: f"{{{{ params['{item.option_name}'] }}}}" for item in known.form}
    lease = {"lease": LEASE} if known.leased else {}
    return {
        "task_id": job,
        "job": job,
        "config": str(pipeline.path),
        "tables": pipeline.tables,
        "replica": REPLICA,
        "arguments": asked | more.pop("arguments", {}),
        **lease,
        **more,
    }


def _form(job: Job, pipeline: PipelineFile) -> dict[str, Param]:
    """The fields of a job's form: its own, then lease and replica."""
    own = {item.option_name: _field(item) for item in job.form}
    return own | ({"lease": _lease_field(pipeline)} if job.leased else {}) | {"replica": _replica_field()}


def _field(item: Argument) -> Param:
    default = {} if item.required else {"default": item.default}
    return Param(**default, title=item.title, description=item.help, **item.schema())


def _replica_field() -> Param:
    return Param(
        None,
        type=["null", "string"],
        pattern=r"^[a-z][a-z0-9_-]{0,62}$",
        title="Replica",
        description="Which replica works. Empty: variable `clickjoin_replica`, else CLICKJOIN_REPLICA, else `main`.",
    )


def _lease_field(pipeline: PipelineFile) -> Param:
    return Param(
        None,
        type=["null", "number"],
        minimum=1,
        maximum=_LEASES * pipeline.lease,
        title="Lease",
        description=f"Seconds of work before the task returns. Empty: the pipeline's own, {pipeline.lease:g} s.",
    )


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


def placeholder(job: str, file: BrokenFile) -> DAG:
    """A DAG for a broken file: never scheduled, it says what is wrong. A run that waits says so too."""
    with DAG(
        f"clickjoin_{job}__{file.name}",
        description=f"{file.path.name} cannot be read",
        schedule=None,
        default_args={"owner": "clickjoin"},
        tags=["clickjoin", job, "broken"],
        doc_md=f"### This pipeline's file cannot be read\n\n{_verbatim(file.problem)}\n",
    ) as dag:
        # The task is called as in the whole DAG, so that a run which was under way finds it.
        BrokenPipelineOperator(task_id=job, problem=file.problem)
    return dag
