"""### Closes dates again whose output has changed since they were closed

Every hour. **changed** compares the rows of closed dates (`close.watch` back, 7 d) with the table's log, without Spark;
**date** closes each that differs again: verified, judged, and its asset `<pipeline>/dates` emitted once more, so that
what was built on the date is built again.
"""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from clickjoin_airflow import ClickjoinOperator, dates, defaults, pipelines

OWN = {"max_consecutive_failed_dag_runs": 0}

for pipeline in pipelines.find(Path(__file__).with_name("pipelines")).good:
    with DAG(schedule=timedelta(hours=1), doc_md=__doc__, **defaults.settings("late", pipeline, leased=False) | OWN):
        changed = ClickjoinOperator(
            task_id="changed",
            app="late",
            config=str(pipeline.path),
            tables=pipeline.tables,
            replica=defaults.REPLICA,
        )
        dates.each(pipeline, changed.output, "close")
