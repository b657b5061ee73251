"""### Collects what joins no longer need

Every ten minutes: moves the registry's boundary forward (never back) by `registry.retention`, `max_rows` and
`max_bytes`, waits for batches from before that where something is to go, drops whole partitions below it, then rows of
`primary` and `foreign` beyond `retention`, settled history of `pending`, old journal and metrics. Then buckets of many
small files are compacted (in the hour that is open, each batch adds one more), and files that no version within
`retention.files` needs are removed. Events older than the boundary go to table `expired` from then on.

**The task** returns what it dropped, by table, as XCom `return_value`. **If it fails:** cut short anywhere, the next
run does the rest. **By hand:** trigger it with `dry_run` in the form to see what would go.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import DAG

from clickjoin_airflow import defaults
from clickjoin_airflow.operator import ClickjoinOperator

if TYPE_CHECKING:
    from clickjoin_airflow.pipelines import PipelineFile


def make(pipeline: PipelineFile) -> DAG:
    """The DAG of one pipeline."""
    with DAG(schedule=timedelta(minutes=10), doc_md=__doc__, **defaults.settings("gc", pipeline)) as dag:
        ClickjoinOperator(**defaults.task("gc", pipeline))
    return dag
