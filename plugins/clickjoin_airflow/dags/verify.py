"""### Proves what is promised, id by id and byte by byte

Every hour, over the events of `verify.window`, and once in `verify.full_every` over all that the lake keeps: every
accepted event is in exactly one place, every output row has its claim and every settled claim its row, no id is there
twice, and every byte of input is accounted for. Joins go on meanwhile; what seems wrong at first is looked at again
before it counts.

**The task** returns counts and samples by kind as XCom `return_value`, and writes them to table `verification`.
**If it fails** with "faults left": docs/verification.md says what each kind means and what to do.
It is not tried again, and the next run looks again. **By hand:** trigger it with another range, `repair` (which
`verify.repair` makes the rule) or `remove_doubles` in the form.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import DAG

from clickjoin_airflow import defaults
from clickjoin_airflow.operator import ClickjoinOperator

if TYPE_CHECKING:
    from clickjoin_airflow.pipelines import PipelineFile

# A whole day may be large, and a verification that has found something three times must go on all the same.
OWN = {"max_consecutive_failed_dag_runs": 0}


def make(pipeline: PipelineFile) -> DAG:
    """The DAG of one pipeline."""
    with DAG(schedule=timedelta(hours=1), doc_md=__doc__, **defaults.settings("verify", pipeline) | OWN) as dag:
        ClickjoinOperator(**defaults.task("verify", pipeline, execution_timeout=timedelta(hours=2)))
    return dag
