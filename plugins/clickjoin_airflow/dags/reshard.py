"""### Spreads events over more or fewer shards

For use by hand, while joins run: from a future event time on, ids are spread over another number of shards. Entries of
the timeline are added and never edited, and an event always finds its shard by its own time, so growing and shrinking
both work at any moment. Refused with the reason: a time that some clock could read already, one before another entry's,
no change at all.

**The task** returns the timeline, and rows by shard, as XCom `return_value`. Without a number of shards it only looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import DAG

from clickjoin_airflow import defaults
from clickjoin_airflow.operator import ClickjoinOperator

if TYPE_CHECKING:
    from clickjoin_airflow.pipelines import PipelineFile


def make(pipeline: PipelineFile) -> DAG:
    """The DAG of one pipeline."""
    with DAG(schedule=None, doc_md=__doc__, **defaults.settings("reshard", pipeline)) as dag:
        ClickjoinOperator(**defaults.task("reshard", pipeline))
    return dag
