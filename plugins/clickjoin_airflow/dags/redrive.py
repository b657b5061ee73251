"""### Sends unjoinable clicks again

For use by hand, after a primary stream that was lost or late has come back: moves all events of this replica from table
`unjoinable` to table `pending`, due at once. `clickjoin_retry` then joins those whose primary event has come.

**The task** returns as XCom `return_value` how many events it sent (`redriven`).
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
    with DAG(schedule=None, doc_md=__doc__, **defaults.settings("redrive", pipeline)) as dag:
        ClickjoinOperator(**defaults.task("redrive", pipeline))
    return dag
