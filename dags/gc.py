"""### Collects what joins no longer need

Every ten minutes: moves the registry's boundary forward (never back) by `registry.retention`, `max_rows` and
`max_bytes`, waits for batches from before that where something is to go, drops whole partitions below it, then rows of
`primary` and `foreign` beyond `retention`, settled history of `pending`, old journal and metrics. Then buckets of many
small files are compacted (in the hour that is open, each batch adds one more), and files that no version within
`retention.files` needs are removed. Events older than the boundary go to table `expired` from then on.

**The task** returns what it dropped, by table, as XCom `return_value`. **If it fails:** cut short anywhere, the next
run does the rest. **By hand:** trigger it with `dry_run` in the form to see what would go.
"""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from clickjoin_airflow import ClickjoinOperator, defaults, pipelines

for pipeline in pipelines.find(Path(__file__).with_name("pipelines")).with_dag("gc"):
    with DAG(schedule=timedelta(minutes=10), doc_md=__doc__, **defaults.settings("gc", pipeline)):
        ClickjoinOperator(**defaults.task("gc", pipeline))
