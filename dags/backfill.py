"""### Fills or rebuilds the output of a range of dates, beside joins that run

For use by hand. **days** checks the range, takes up raw logs of the past where globs are given, and names the dates;
**date** runs once for each, as many at a time as pool `clickjoin_backfill` has slots. `fill` joins only what is
missing, and changes nothing on a complete date; `rebuild` runs today's adapter again over the same ids, and replaces
the rows in one commit: readers never see half, and time travel shows what was there. A date whose output has changed
emits asset `<pipeline>/dates`.

**If a date fails**, the others go on. Clear that one task to try it again: what is done stays done. A dry run says in
the log of `days` what would be done to each date, and changes nothing.
"""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Param

from clickjoin_airflow import ClickjoinOperator, dates, defaults, pipelines

ROOTS = "Glob of logs to take up first, below a folder that the pipeline's file names (backfill.roots)."
GLOB = {"type": ["null", "string"]}
FORM = {
    "from": Param(type="string", format="date", title="From", description="First date, UTC."),
    "to": Param(None, type=["null", "string"], format="date", title="To", description="Last date. Empty: the first."),
    "mode": Param("fill", enum=["fill", "rebuild"], title="Mode", description="rebuild: run the adapter again."),
    "primary": Param(None, title="Raw queries", description=ROOTS, **GLOB),
    "foreign": Param(None, title="Raw clicks", description=ROOTS, **GLOB),
    "dry_run": Param(False, type="boolean", title="Dry run", description="Say what would be done, and change nothing."),
}
OWN = {"max_consecutive_failed_dag_runs": 0, "dagrun_timeout": timedelta(days=30)}

for pipeline in pipelines.find(Path(__file__).with_name("pipelines")).good:
    settings = defaults.settings("backfill", pipeline, leased=False, form=FORM) | OWN
    with DAG(schedule=None, doc_md=__doc__, **settings):
        days = ClickjoinOperator(
            task_id="days",
            app="days_of",
            config=str(pipeline.path),
            tables=pipeline.tables,
            replica=defaults.REPLICA,
            execution_timeout=timedelta(hours=6),
            arguments={
                "since": "{{ params['from'] }}",
                "until": "{{ params.to }}",
                "mode": "{{ params.mode }}",
                "primary": "{{ params.primary }}",
                "foreign": "{{ params.foreign }}",
                "dry_run": "{{ params.dry_run }}",
            },
        )
        dates.each(pipeline, days.output, "{{ params.mode }}")
