"""One Spark session for all tests of this folder, and lakes to work in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clickjoin.session import in_process
from tests.spark.bench import Bench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs a Spark session."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session, with the settings that clickjoin relies on."""
    session = in_process(cores="2", memory="2g")
    yield session
    session.stop()


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Callable[..., Bench]:
    """Makes pipelines with a lake and logs of their own; arguments are those of Bench."""

    def make(**fields: object) -> Bench:
        name = str(fields.pop("name", "bench"))
        return Bench(spark, tmp_path / name, fields)

    return make
