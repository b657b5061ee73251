"""Pauses a DAG whose runs overlap once its last runs have failed: Airflow looks at the newest runs, one of which works.

A listener, which the scheduler calls; it works in the scheduler's own transaction.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow.listeners import hookimpl

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

_LOG = logging.getLogger(__name__)


@hookimpl
def on_dag_run_failed(dag_run: DagRun, msg: str) -> None:
    """Where the last runs to end, `max_consecutive_failed_dag_runs` of them, have failed, pause their DAG."""
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun as Run
    from airflow.models.log import Log
    from airflow.utils.state import DagRunState
    from sqlalchemy import select
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    # Not where somebody has marked a run as failed: then Airflow pauses nothing either.
    if msg != "task_failure" or session is None or not dag_run.dag_id.startswith("clickjoin_"):
        return
    dag = session.get(DagModel, dag_run.dag_id)
    if dag is None or dag.is_paused or (dag.max_active_runs or 0) < 2 or not dag.max_consecutive_failed_dag_runs:
        return
    ended = select(Run.state).where(Run.dag_id == dag.dag_id, Run.end_date.is_not(None))
    last = session.scalars(ended.order_by(Run.end_date.desc()).limit(dag.max_consecutive_failed_dag_runs)).all()
    if len(last) == dag.max_consecutive_failed_dag_runs and set(last) == {DagRunState.FAILED}:
        _LOG.info("Pausing %s: the last %s of its runs to end have failed", dag.dag_id, len(last))
        dag.is_paused = True
        session.add(Log(event="paused", dag_id=dag.dag_id, owner="clickjoin", extra="its last runs have failed"))
