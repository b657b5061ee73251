"""### Closes a date: joins what is missing, proves that nothing is lost, judges the data, and tells who waits

One run a date (UTC), whose data interval is that date. **complete** waits until no source holds an unread event of the
date and none of its events waits for its primary (`close.pending`), at most `close.wait` after the date's end; it needs
no Spark and no slot meanwhile. **close** tries again what has not joined, verifies the date, runs its quality suite,
writes a row to table `dates` and, if the date is closed and its output is not what it was when it was last closed,
emits asset `<pipeline>/dates` with the date as its partition. A DAG with `PartitionedAssetTimetable(assets=Asset(name=
"<pipeline>/dates"))` runs then, and only then.

**If it fails**, the date is `failing` (faults, or quality checks of level fail: see the log and table `quality`) or
still `open` at its limit; nothing is emitted. Fix the cause and clear the task. **By hand:** with a date, and
`rebuild` to run the adapter again; *Close anyway, because* closes it with what is there, and keeps the reason.
**Backfill:** `airflow backfill create` on this DAG, with `{"mode": "rebuild"}` as its configuration to recompute;
`clickjoin_backfill__<pipeline>` has a form for the same.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow.sdk import DAG, CronDataIntervalTimetable

from clickjoin_airflow import dates, defaults
from clickjoin_airflow.operator import ClickjoinOperator

if TYPE_CHECKING:
    from clickjoin_airflow.pipelines import PipelineFile

# Dates of the past can be backfilled; without catch-up none is scheduled.
START = datetime(2000, 1, 1, tzinfo=UTC)
# The date of one run may wait while the next one begins.
OWN = {"max_active_runs": 16, "max_consecutive_failed_dag_runs": 0, "dagrun_timeout": None, "start_date": START}
DATE = "{{ params.date or (data_interval_start | ds if data_interval_start else macros.ds_add(ds, -1)) }}"


def make(pipeline: PipelineFile) -> DAG:
    """The DAG of one pipeline."""
    settings = defaults.settings("close_day", pipeline) | OWN
    with DAG(schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"), doc_md=__doc__, **settings) as dag:
        complete = dates.DateCompleteSensor(
            task_id="complete",
            config=str(pipeline.path),
            date=DATE,
            reason="{{ params.reason or '' }}",
            poke_interval=timedelta(seconds=60),
            max_active_tis_per_dag=None,
            execution_timeout=None,
        )
        close = ClickjoinOperator(
            **dates.closing(
                pipeline,
                "close",
                execution_timeout=timedelta(hours=6),
                arguments={
                    "date": "{{ ti.xcom_pull(task_ids='complete')['date'] }}",
                    "action": "{{ params.mode }}",
                    "run": "{{ run_id }}",
                    "forced": "{{ ti.xcom_pull(task_ids='complete')['forced'] }}",
                },
            )
        )
        complete >> close
    return dag
