"""### Joins new records of a pipeline, without end

Each run works through micro-batches for the pipeline's lease (`batch.lease`, 60 s unless set), then returns what it
did. Airflow starts the next as that lease ends. It loads what it needs while the one before still works, says in the
journal that it is ready, and takes over between two batches; the one before returns when it has, at the latest
`batch.hand_over` (30 s) after its lease. A batch is planned in the pipeline's journal before it starts, so a run that
is cut short loses nothing and doubles nothing: the next one takes its batch up again.

A pipeline that reads the output of another one runs when that one's asset `<pipeline>/joined` has an event, at least
once a minute, for the records of its own logs; one run at a time.

**The task** returns its counts as XCom `return_value` and adds an event with them to asset `<pipeline>/joined` if it
joined anything. It runs where connection `clickjoin_spark` says: on a Spark Connect server, or through spark-submit.

**If it fails:** a lost server is tried again for a day, at least once a minute. A wrong pipeline file or adapter is
never tried again, and other errors five times; after three failed runs in a row Airflow pauses this DAG. The log's last
lines say which it was. Fix the cause, then unpause: it goes on where it stopped.

**By hand:** trigger it with another lease or replica in the form. A run of the same replica takes over from the one
that works, and hands over to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, AssetAny, AssetOrTimeSchedule, CronTriggerTimetable

from clickjoin_airflow import defaults
from clickjoin_airflow.operator import ClickjoinOperator

if TYPE_CHECKING:
    from clickjoin_airflow.pipelines import PipelineFile


def make(pipeline: PipelineFile) -> DAG:
    """The DAG of one pipeline."""
    if upstreams := pipeline.upstream_outputs:
        minutely = CronTriggerTimetable("* * * * *", timezone="UTC")
        settings: dict[str, Any] = defaults.settings("join", pipeline)
        settings["schedule"] = AssetOrTimeSchedule(timetable=minutely, assets=AssetAny(*upstreams))
    else:
        settings = defaults.overlapping("join", pipeline)
    arguments = {"hands_over": not upstreams}
    with DAG(doc_md=__doc__, **settings) as dag:
        ClickjoinOperator(
            **defaults.task("join", pipeline, arguments=arguments, outlets=[pipeline.joined], inlets=upstreams)
        )
    return dag
