"""One Spark session for all tests of this folder, and lakes to work in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clickjoin.lake import small_reads
from clickjoin.spark.session import in_process
from tests.s3.fixtures import gateway as gateway
from tests.s3.fixtures import lakes as lakes
from tests.sampled import FULL
from tests.spark.bench import Bench, Lake
from tests.spark.hand import Hand
from tests.spark.person import person as person
from tests.spark.person import without as without
from tests.spark.worn import worn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs a Spark session."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(lakes: Path | None) -> Iterator[SparkSession]:
    """The session, with the settings that clickjoin relies on; the JVM's quick compiler is enough for minutes."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")
    session = in_process(cores="2", memory="2g", s3=lakes is not None)
    yield session
    session.stop()


# Whose tables Spark reads, as it does where they are large; all in `make matrix`.
READ_BY_SPARK = ("test_engine", "test_lost", "test_rebuild")


@pytest.fixture(scope="module", autouse=True)
def read_by_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have Spark read tables of few rows too."""
    with pytest.MonkeyPatch.context() as patch:
        if FULL or request.path.stem in READ_BY_SPARK:
            patch.setattr(small_reads, "_ON_DISK", (0, 0))
        yield


@pytest.fixture(scope="session")
def make(spark: SparkSession, lakes: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Bench]:
    """Makes pipelines with logs and a lake of their own; arguments replace fields of the pipeline's file."""

    def build(**fields: Any) -> Bench:
        folder = tmp_path_factory.mktemp("bench")
        place = Lake(f"s3://{lakes.name}/{folder.name}", lakes / folder.name) if lakes else None
        return Bench(spark, folder, fields, place)

    return build


@pytest.fixture(scope="session")
def healthy(make: Callable[..., Bench]) -> Bench:
    """A lake that has been through everything (see worn); leave it as it is."""
    return worn(make)


@pytest.fixture
def hand(healthy: Bench, tmp_path: Path) -> Iterator[Hand]:
    """That lake, to be changed: it is put back afterwards."""
    with healthy.kept(tmp_path / "kept"):
        yield Hand(healthy)
