"""docker-compose.small.yml: logs and lake in a volume, counted from outside in a copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose import count, more_logs
from tests.compose.conftest import Ground
from tests.compose.containers import Containers
from tests.compose.test_full import PATIENCE

pytestmark = [pytest.mark.airflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def small(ground: Ground) -> Iterator[Containers]:
    made = Containers(ground.docker, ground.tree, "docker-compose.small.yml", "clickjoin-test-small")
    made.down()
    try:
        made.up()
        yield made
        print(made.memory())
    finally:
        made.down()


def test_the_shipped_pipeline_joins_all_clicks(small: Containers, tmp_path: Path) -> None:
    copies = iter(range(10_000))

    def found() -> count.Pairs:
        copy = tmp_path / str(next(copies))
        try:
            small("cp", "scheduler:/data/zozo/lake/zozo/joined", str(copy))
        except RuntimeError:  # not there yet, or its files changed while they were copied
            return count.Pairs()
        return count.joined(str(copy))

    assert count.counted(found, more_logs.shipped(), PATIENCE), small("logs", "--tail", "30")[-20_000:]
