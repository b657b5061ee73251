"""### Closes dates again whose output has changed since they were closed

Every hour. **changed** compares the rows of closed dates (`close.late_window` back, 7 d) with the table's log,
without Spark;
**date** closes each that differs again: verified, judged, and its asset `<pipeline>/dates` emitted once more, so that
what was built on the date is built again.
"""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from clickjoin_airflow import ClickjoinOperator, dates, defaults, pipelines

OWN = {"max_consecutive_failed_dag_runs": 0}

for pipeline in pipelines.find(Path(__file__).with_name("pipelines")).with_dag("reclose_changed"):
    settings = defaults.settings("reclose_changed", pipeline) | OWN
    with DAG(schedule=timedelta(hours=1), doc_md=__doc__, **settings):
        changed = ClickjoinOperator(**defaults.task("reclose_changed", pipeline, task_id="changed"))
        dates.each(pipeline, changed.output, "close")
