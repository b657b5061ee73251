"""### Sends unjoinable clicks round again

For use by hand, after a primary stream that was lost or late has come back: moves all events of this replica from table
`unjoinable` to table `pending`, due at once. `clickjoin_retry` then joins those whose primary event has come.

**The task** returns as XCom `return_value` how many events it sent (`redriven`).
"""

from pathlib import Path

from airflow.sdk import DAG

from clickjoin_airflow import ClickjoinOperator, defaults, pipelines

for pipeline in pipelines.find(Path(__file__).with_name("pipelines")).with_dag("redrive"):
    with DAG(schedule=None, doc_md=__doc__, **defaults.settings("redrive", pipeline)):
        ClickjoinOperator(**defaults.task("redrive", pipeline))
