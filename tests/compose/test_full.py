"""docker-compose.yml: all of it, from S3 to S3, counted from outside; and parts of it killed.

CLICKJOIN_PICTURES: a folder for pictures of the pages.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow.visit import needs_browser
from tests.compose import count, more_logs, pictures
from tests.compose.conftest import Ground
from tests.compose.containers import Containers

pytestmark = [pytest.mark.airflow, pytest.mark.faults, pytest.mark.slow]
PATIENCE = 1200.0  # seconds
TABLE = "s3://lake/zozo/joined"


@pytest.fixture(scope="module")
def full(ground: Ground) -> Iterator[Containers]:
    made = Containers(ground.docker, ground.tree, "docker-compose.yml", "clickjoin-test")
    made.down()  # what a run left that was killed
    try:
        made.up()
        yield made
        print(made.memory())
    finally:
        made.down()
    assert ground.docker("ps", "--all", "--quiet", "--filter", "label=com.docker.compose.project=clickjoin-test") == ""


@pytest.fixture(scope="module")
def wanted() -> set[tuple[str, str]]:
    """All that is to be joined, as far as the logs have come."""
    return more_logs.shipped()


def all_joined(full: Containers, wanted: set[tuple[str, str]]) -> bool:
    """Each exactly once."""
    store = count.options(full.s3, full.tree)
    return count.counted(lambda: count.joined(TABLE, store), wanted, PATIENCE)


def test_the_shipped_pipeline_joins_all_clicks(full: Containers, wanted: set[tuple[str, str]]) -> None:
    assert len(wanted) == 207
    assert all_joined(full, wanted), full("logs", "--tail", "30")[-20_000:]
    print(full.memory())


@pytest.mark.parametrize(("number", "name"), [(1, "scheduler-1"), (2, "spark-worker-1"), (3, "worker-1")])
def test_a_part_is_killed_and_all_is_joined_once(
    full: Containers, wanted: set[tuple[str, str]], number: int, name: str
) -> None:
    """There is work when it dies, and more comes before it is back."""
    store = count.options(full.s3, full.tree)
    for round_ in (2 * number, 2 * number + 1):
        files, pairs = more_logs.more(round_)
        more_logs.put(store, files)
        wanted |= pairs
        if round_ % 2 == 0:
            full.kill(name)
    assert all_joined(full, wanted), full("logs", "--tail", "30")[-20_000:]
    full.until(full.well, f"not all is healthy again after {name} was killed")


@needs_browser
def test_its_pages_are_seen(full: Containers, tmp_path: Path) -> None:
    out = Path(os.environ.get("CLICKJOIN_PICTURES") or tmp_path)
    pictures.take(f"http://127.0.0.1:{full.airflow}", full.password, "zozo", out)


def test_all_is_proven_and_no_run_has_failed(full: Containers) -> None:
    full("exec", "worker", "clickjoin", "verify", "--config", "/pipelines/zozo.yaml")
    state = full.run_dag("clickjoin_verify__zozo")
    assert (state, full.failures()) == ("success", [])
