"""### Gives what was joined to the pipeline's processor, key by key

Each run takes up new rows of the output for the pipeline's lease (`batch.lease`), without Spark. Airflow starts the
next as that lease ends, and it takes over between two batches, as with `clickjoin_join`. State and what it reports are
one commit, so a run that is cut short counts no event twice and reports no signal twice: the next one takes its batch
up again.

**The task** returns its counts as XCom `return_value`, and adds an event with them to asset
`<pipeline>/process/signals` if it reported anything. Events behind the watermark are kept in table `process/late`, and
counted.

**If it fails:** what passes by itself is tried again; an output that was put back from a copy, and a processor that was
exchanged, are refused with the remedy (**rebuild** in the form begins again from the whole output).
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
    arguments = {"hands_over": True}
    with DAG(doc_md=__doc__, **defaults.overlapping("process", pipeline)) as dag:
        ClickjoinOperator(
            **defaults.task(
                "process", pipeline, arguments=arguments, outlets=[pipeline.signals], inlets=[pipeline.joined]
            )
        )
    return dag
