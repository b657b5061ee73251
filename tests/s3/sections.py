"""What processes of their own do with pipelines that lie in two stores."""

from __future__ import annotations

from pathlib import Path

from clickjoin.config import Pipeline, load
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake.probe import fault_on_s3
from clickjoin.lake.snapshot_files import PinnedTables, look
from clickjoin.lake_setup import initialise
from clickjoin.model.ids import moment
from clickjoin.model.places import declare
from clickjoin.schemas.arrow import arrow_schema
from clickjoin_airflow import pipelines as of_airflow
from clickjoin_airflow.status.pipeline_view import PipelineView


def work_on(files: list[Path]) -> None:
    """Begin the lakes of pipelines, and read each: all in this process."""
    pipelines = [load(file) for file in files]
    for pipeline in pipelines:
        assert fault_on_s3(pipeline.root) is None
        initialise(pipeline)
        _log(pipeline)
    for pipeline in pipelines:
        assert ArrowTables(pipeline.root).read("forgotten")["event_id"].to_pylist() == [pipeline.pipeline]
        seen = look(pipeline.root, "forgotten")
        assert seen
        assert PinnedTables(pipeline.root, {"forgotten": seen.version - 1}).read("forgotten").num_rows == 0


def read_pages(files: list[Path]) -> None:
    """Begin lakes of 3 and 5 shards, and read them as the status page does."""
    views = []
    for path in files:
        initialise(load(path))
        declare(load(path).root, None)  # the page reads no file in full
        views.append(PipelineView(of_airflow.read(path)))
    assert [view.registry()["timeline"][-1]["shards"] for view in views] == [3, 5]


def _log(pipeline: Pipeline) -> None:
    delta = ArrowTables(pipeline.root)
    columns = dict.fromkeys(arrow_schema(delta.table("forgotten")).names)
    delta.append("forgotten", [columns | {"event_id": pipeline.pipeline, "event_time": moment(0), "at": moment(0)}])
