"""Import `dags/` as Airflow does, and print what came of it as JSON. A process of its own: imports must not be warm."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization


def job(task: object) -> str | None:
    """The job that a task runs, also of one that is mapped over."""
    return getattr(task, "job", None) or getattr(task, "partial_kwargs", {}).get("job")


def asset_uris(dag: DAG) -> list[str]:
    """Assets whose events start a run."""
    condition = getattr(dag.timetable, "asset_condition", None)
    return [asset.uri for asset in condition.objects] if condition else []


def describe(dag: DAG) -> dict[str, object]:
    task = dag.tasks[0]
    return {
        "timetable": type(dag.timetable).__name__,
        "max_active_runs": dag.max_active_runs,
        "max_failures": dag.max_consecutive_failed_dag_runs,
        "catchup": dag.catchup,
        "start": str(dag.start_date),
        "tags": sorted(dag.tags),
        "doc": dag.doc_md or "",
        "params": {name: dag.params.get_param(name).schema for name in dag.params},
        "description": dag.description,
        "run_timeout": dag.dagrun_timeout.total_seconds() if dag.dagrun_timeout else None,
        "owner": task.owner,
        "tasks": dag.task_ids,
        "jobs": [name for task in dag.tasks if (name := job(task))],
        "at_once": task.max_active_tis_per_dag,
        "timeout": task.execution_timeout.total_seconds() if task.execution_timeout else None,
        "retries": task.retries,
        "outlets": [(asset.name, asset.uri) for asset in task.outlets],
        "inlets": [(asset.name, asset.uri) for asset in task.inlets],
        "asset_uris": asset_uris(dag),
        "serialized": len(DagSerialization.to_json(dag)),
    }


def main(folder: str) -> None:
    begun = time.process_time()  # its own, whatever else the machine does
    bag = DagBag(dag_folder=folder)
    seconds = time.process_time() - begun
    heavy = [name for name in ("pyspark", "pandas", "pyarrow", "deltalake", "delta", "grpc") if name in sys.modules]
    result = {
        "seconds": seconds,
        "heavy": heavy,
        "errors": {Path(file).name: text for file, text in bag.import_errors.items()},
        "dags": {name: describe(dag) for name, dag in bag.dags.items()},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
