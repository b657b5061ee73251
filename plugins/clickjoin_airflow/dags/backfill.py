"""### Fills or rebuilds the output of a range of dates, beside joins that run

For use by hand. **days** checks the range, takes up raw logs of the past where globs are given, and names the dates;
**date** runs once for each, as many at a time as pool `clickjoin_backfill` has slots. `fill` joins only what is
missing, and changes nothing on a complete date; `rebuild` runs today's adapter again over the same ids, and replaces
the rows in one commit: readers never see half, and time travel shows what was there. A date whose output has changed
emits asset `<pipeline>/dates`.

**If a date fails**, the others go on. Clear that one task to try it again: what is done stays done. A dry run says in
the log of `days` what would be done to each date, and changes nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import DAG

from clickjoin_airflow import dates, defaults
from clickjoin_airflow.operator import ClickjoinOperator

if TYPE_CHECKING:
    from clickjoin_airflow.pipelines import PipelineFile

OWN = {"max_consecutive_failed_dag_runs": 0, "dagrun_timeout": timedelta(days=30)}


def make(pipeline: PipelineFile) -> DAG:
    """The DAG of one pipeline."""
    settings = defaults.settings("plan_backfill", pipeline, dag="backfill") | OWN
    with DAG(schedule=None, doc_md=__doc__, **settings) as dag:
        limit = timedelta(hours=6)
        days = ClickjoinOperator(**defaults.task("plan_backfill", pipeline, task_id="days", execution_timeout=limit))
        dates.each(pipeline, days.output, "{{ params.mode }}")
    return dag
