"""Spark Connect and Airflow, started once for all tests that run DAGs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demo.backfill import downstream
from stack import Stack
from tests.airflow.real.collector import collecting
from tests.airflow.real.live import LEASE, Live, reporting_to
from tests.airflow.real.logs import Logs


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory, write_pipeline: Callable[..., Path]) -> Iterator[Live]:
    """Spark Connect and Airflow in a folder of their own, with these pipelines: clicks, long, wrong, half (a broken
    file), days, whose closed dates DAG `downstream` waits for, and left, right and lost, which one task joins.
    """
    folder = tmp_path_factory.mktemp("live")
    write_pipeline(folder, "clicks", lease=f"{LEASE}s")
    write_pipeline(folder, "long", lease=f"{6 * LEASE}s")  # else it is over before it is killed
    write_pipeline(folder, "wrong", adapter="no_such_module:Adapter")  # which fails later than its lease is over
    days = write_pipeline(folder, "days", lease=f"{4 * LEASE}s")
    days.write_text(days.read_text() + "close: {idle_timeout: 5s, max_out_of_orderness: 1s, late_window: 3650d}\n")
    for name in ("left", "right", "lost"):
        path = write_pipeline(folder, name, lease=f"{LEASE}s")
        # The batches of one go through Spark, on a session that is not the task's.
        written = path.read_text().replace("batch: {", "batch: {driver_bytes: 0B, " if name == "right" else "batch: {")
        path.write_text(written + "airflow: {group: pair, dags: [join]}\n")
    (folder / "half.yaml").write_text("pipeline: [")
    dags = shutil.copytree(Path(__file__).resolve().parents[3] / "dags", folder / "dags")
    (dags / "downstream.py").write_text(downstream("days"))
    begun = time.monotonic()
    with (
        collecting() as collector,
        Stack(folder / "home", pipelines=folder, dags=dags, env=reporting_to(collector)) as stack,
    ):
        print(f"stack started in {time.monotonic() - begun:.0f} s")
        yield Live(stack, Logs(folder, "clicks"), collector)
