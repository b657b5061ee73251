"""One Spark session for all of this folder, and each engine that the promise is tried on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clickjoin.spark.session import in_process
from tests.conformance.world import World
from tests.sampled import LONG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# With Spark in each run, since a batch of it takes seconds: a kill between claim and output; a copy of a batch that
# wakes late, after one of the other engine; and a guard that is taken out. All else by `make conformance`.
_WITH_SPARK = (
    "spark-join-joined-before", "spark-claimed once", "across-joined-before-main",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most of Spark's cases to `make conformance`."""
    for item in items:
        slow = "[spark" in item.name or "[across" in item.name
        if not LONG and slow and not any(name in item.name for name in _WITH_SPARK):
            item.add_marker(pytest.mark.skip(reason="left to make conformance"))


# The engine of the first process, and that of a second replica and of whoever goes on after a kill.
ENGINES = {"arrow": ("arrow", "arrow"), "spark": ("spark", "spark"), "across": ("spark", "arrow")}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session; the JVM's quick compiler is enough for minutes."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")
    session = in_process(cores="2", memory="1500m")
    yield session
    session.stop()


@pytest.fixture(scope="session", params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    """The engine that a case runs on."""
    return str(request.param)


@pytest.fixture(scope="session")
def make(spark: SparkSession, engine: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., World]:
    """Makes pipelines with logs and a lake of their own; arguments replace fields of the pipeline's file."""

    kept: dict[str, Path] = {}  # lakes of these fields as they were begun: to make their tables takes Spark a while

    def build(**fields: Any) -> World:
        folder: Path = tmp_path_factory.mktemp("world")
        known = kept.get(repr(fields))
        if known:
            shutil.copytree(known, folder / "lake")
        world = World(spark, folder, fields, ENGINES[engine])
        if not known and "stream" not in fields:  # which needs a record before it can begin
            world.engine()
            kept[repr(fields)] = tmp_path_factory.mktemp("begun") / "lake"
            shutil.copytree(folder / "lake", kept[repr(fields)])
            world.forget_processes()
        return world

    return build
