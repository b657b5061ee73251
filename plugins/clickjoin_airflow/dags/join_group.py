"""### Joins the pipelines of a group, all in one task

For pipelines that would each keep a task busy with little work. Those whose files name the same `airflow.group` are
joined by one process: a few at a time, each on a Spark session of its own, the one that has waited longest first. Of
those that are behind, half of them at most while others are not. It also tries again what waits, so that these
pipelines have no DAG `clickjoin_retry__<pipeline>`, unless `airflow.dags` names it.

Runs overlap as those of `clickjoin_join`: each pipeline is handed over by itself, between two batches. The lease is the
longest of theirs.

**join** returns as XCom `return_value` the sums, what each pipeline did (`pipelines`), and adds an event to the asset
`<pipeline>/joined` of each that has joined anything.

**If `failed` fails:** it names each pipeline that could not go on, and why; the others were joined anyway, and
the next run begins with all of them. It is skipped where there is none. This DAG is never paused by failures: it would
stop those that work. **If `join` fails**, as with `clickjoin_join`: a lost Spark server is tried again for a day, at
least once a minute.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow.sdk import DAG

from clickjoin_airflow import defaults
from clickjoin_airflow.group_operator import FailedPipelinesOperator, GroupOperator

if TYPE_CHECKING:
    from clickjoin_airflow.pipelines import PipelineFile


def make(group: str, files: Sequence[PipelineFile]) -> DAG:
    """The DAG of one group."""
    longest = max(files, key=lambda file: file.lease)
    settings = defaults.overlapping("join_group", longest) | {
        "dag_id": f"clickjoin_join_group__{group}",
        "description": f"join of pipelines {', '.join(file.name for file in files)}",
        "max_consecutive_failed_dag_runs": 0,
        "tags": ["clickjoin", "join", *(file.name for file in files)],
    }
    named = defaults.task(
        "join_group",
        longest,
        task_id="join",
        arguments={"hands_over": True},
        outlets=[file.joined for file in files],
        inlets=list({asset.uri: asset for file in files for asset in file.upstream_outputs}.values()),
    )
    named |= {"config": os.pathsep.join(str(file.path) for file in files), "tables": ""}
    with DAG(doc_md=__doc__, **settings) as dag:
        join = GroupOperator(members={file.name: file.tables for file in files}, **named)
        join >> FailedPipelinesOperator(task_id="failed", of=join.task_id, retries=0)
    return dag
