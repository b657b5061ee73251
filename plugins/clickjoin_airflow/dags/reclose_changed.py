"""### Closes dates again whose output has changed since they were closed

Every hour. **changed** compares the rows of closed dates (`close.late_window` back, 7 d) with the table's log,
without Spark;
**date** closes each that differs again: verified, judged, and its asset `<pipeline>/dates` emitted once more, so that
what was built on the date is built again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import DAG

from clickjoin_airflow import dates, defaults
from clickjoin_airflow.operator import ClickjoinOperator

if TYPE_CHECKING:
    from clickjoin_airflow.pipelines import PipelineFile

OWN = {"max_consecutive_failed_dag_runs": 0}


def make(pipeline: PipelineFile) -> DAG:
    """The DAG of one pipeline."""
    settings = defaults.settings("reclose_changed", pipeline) | OWN
    with DAG(schedule=timedelta(hours=1), doc_md=__doc__, **settings) as dag:
        changed = ClickjoinOperator(**defaults.task("reclose_changed", pipeline, task_id="changed"))
        dates.each(pipeline, changed.output, "close")
    return dag
