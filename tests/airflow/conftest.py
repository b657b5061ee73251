"""An Airflow home for tests that import Airflow in this process, and pipelines to build DAGs from."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

# Airflow writes its settings there when it is first imported; the folder goes when this process does.
_home = tempfile.TemporaryDirectory(prefix="clickjoin-airflow-")
os.environ["AIRFLOW_HOME"] = _home.name

PIPELINE = """\
pipeline: {name}
engine: arrow
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
CHAINED = """\
pipeline: {name}
engine: arrow
lake: ./lake
primary:
  source: {{kind: pipeline, name: {upstream}}}
  event_id: event_id
  event_time: embedded
foreign:
  source: {{kind: files, path: "./{name}-logs/*.jsonl"}}
  event_id: event_id
  event_time: embedded
  primary_id: click_id
  primary_time: embedded
"""

WritePipeline = Callable[..., Path]


@pytest.fixture(scope="session")
def write_pipeline() -> WritePipeline:
    """Writes a pipeline's file into a folder."""

    def write(folder: Path, name: str, *, file: str | None = None, lake: str = "./lake", lease: str = "5s",
              adapter: str = "clickjoin.joiner.adapter:BothRecords") -> Path:  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (file or f"{name}.yaml")
        path.write_text(PIPELINE.format(name=name, lake=lake, lease=lease, adapter=adapter))
        return path

    return write
