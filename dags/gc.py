"""### Collects what joins no longer need

Every ten minutes: moves the registry's boundary forward (never back) by `registry.retention`, `max_rows` and
`max_bytes`, waits for batches from before that where something is to go, drops whole partitions below it, then rows of
`primary` and `foreign` beyond `keep`, settled history of `pending`, old journal and metrics. Then buckets of many small
files are rewritten into few (of the hour that is open, each batch makes one more), and files that no version within
`keep.files` needs are removed. Events older than the boundary go to table `expired` from then on.

**The task** returns what it dropped, by table, as XCom `return_value`. **If it fails:** cut short anywhere, the next
run does the rest. **By hand:** trigger it with `dry_run` in the form to see what would go.
"""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Param

from clickjoin_airflow import ClickjoinOperator, defaults, pipelines

FORM = {
    "dry_run": Param(False, type="boolean", title="Dry run", description="Say what would go, and change nothing."),
    "wait": Param(60, type="number", minimum=0, title="Wait", description="Seconds to wait for batches under way."),
}

for pipeline in pipelines.find(Path(__file__).with_name("pipelines")).good:
    settings = defaults.settings("gc", pipeline, leased=False, form=FORM)
    with DAG(schedule=timedelta(minutes=10), doc_md=__doc__, **settings):
        ClickjoinOperator(
            task_id="gc",
            app="gc",
            config=str(pipeline.path),
            tables=pipeline.tables,
            replica=defaults.REPLICA,
            arguments={"dry_run": "{{ params.dry_run }}", "wait": "{{ params.wait }}"},
        )
