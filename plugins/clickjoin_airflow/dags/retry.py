"""### Tries pending clicks again

A foreign event whose primary event is not there yet waits in table `pending`, and falls due again after
`retry.first_delay`, then later and later. Every 15 s a run takes up all that are due and then returns; joined rows go
to the same output, exactly once like those of `clickjoin_join`. What has been tried often and long enough goes to table
`unjoinable`; `clickjoin_redrive` sends that again.

**The task** returns its counts as XCom `return_value`, `waiting` among them: how many events are left in `pending`.

**If it fails:** as with `clickjoin_join`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import DAG

from clickjoin_airflow import defaults
from clickjoin_airflow.operator import ClickjoinOperator

if TYPE_CHECKING:
    from clickjoin_airflow.pipelines import PipelineFile

# The deployment's own replica may not have begun to join yet; one that is named by hand must have.
NEW = {"may_be_new": "{{ not params.replica }}"}


def make(pipeline: PipelineFile) -> DAG:
    """The DAG of one pipeline."""
    with DAG(schedule=timedelta(seconds=15), doc_md=__doc__, **defaults.settings("retry", pipeline)) as dag:
        ClickjoinOperator(**defaults.task("retry", pipeline, arguments=NEW, outlets=[pipeline.joined]))
    return dag
