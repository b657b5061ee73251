"""An Airflow home for tests that import Airflow in this process, and pipelines to build DAGs from."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stack import Stack
from tests.airflow.collector import collecting
from tests.airflow.live import LEASE, Live, told_to
from tests.airflow.logs import Logs

if TYPE_CHECKING:
    from tests.airflow.site.server import Site

# Airflow writes its settings there when it is first imported; the folder goes when this process does.
_home = tempfile.TemporaryDirectory(prefix="clickjoin-airflow-")
os.environ["AIRFLOW_HOME"] = _home.name

PIPELINE = """\
pipeline: {name}
lake: {lake}
primary:
  source: {{kind: files, path: "./{name}-logs/queries/*.jsonl"}}
  event_id: event_id
  event_time: embedded
foreign:
  source: {{kind: files, path: "./{name}-logs/clicks/*.jsonl"}}
  event_id: event_id
  event_time: embedded
  primary_id: query_id
  primary_time: embedded
retry: {{first_delay: 5s, backoff: 1, max_delay: 5s, max_age: 1h, max_attempts: 100}}
batch: {{lease: {lease}}}
adapter: {adapter}
"""

WritePipeline = Callable[..., Path]


@pytest.fixture(scope="session")
def write_pipeline() -> WritePipeline:
    """Writes a pipeline's file into a folder."""

    def write(folder: Path, name: str, *, file: str | None = None, lake: str = "./lake", lease: str = "5s",
              adapter: str = "clickjoin.joiner.adapter:Merge") -> Path:  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (file or f"{name}.yaml")
        path.write_text(PIPELINE.format(name=name, lake=lake, lease=lease, adapter=adapter))
        return path

    return write


DOWNSTREAM = """\
from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, task

with DAG("downstream", schedule=PartitionedAssetTimetable(assets=Asset.ref(name="days/dates"))):

    @task
    def report(dag_run=None):
        return dag_run.partition_key

    report()
"""


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory, write_pipeline: WritePipeline) -> Iterator[Live]:
    """Spark Connect and Airflow in a folder of their own, with these pipelines: clicks, wrong, half (a broken file)
    and days, whose closed dates DAG `downstream` waits for.
    """
    folder = tmp_path_factory.mktemp("live")
    write_pipeline(folder, "clicks", lease=f"{LEASE}s")
    write_pipeline(folder, "wrong", adapter="no_such_module:Adapter")
    days = write_pipeline(folder, "days", lease=f"{LEASE}s")
    days.write_text(days.read_text() + "close: {idle: 5s, disorder: 1s, watch: 3650d}\n")
    (folder / "half.yaml").write_text("pipeline: [")
    dags = shutil.copytree(Path(__file__).resolve().parents[2] / "dags", folder / "dags")
    (dags / "downstream.py").write_text(DOWNSTREAM)
    begun = time.monotonic()
    with (
        collecting() as collector,
        Stack(folder / "home", pipelines=folder, dags=dags, env=told_to(collector)) as stack,
    ):
        print(f"stack started in {time.monotonic() - begun:.0f} s")
        yield Live(stack, Logs(folder, "clicks"), collector)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, write_pipeline: WritePipeline) -> Iterator[Site]:
    """Airflow with the status page on a lake made by hand, started once for all tests that look at it."""
    from tests.airflow.site.server import site as running

    with running(tmp_path_factory.mktemp("site"), write_pipeline) as started:
        yield started
