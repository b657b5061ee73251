"""Tables of few rows on a disk are read by this process, as Spark reads them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from clickjoin.lake import small_reads
from clickjoin.schemas import ALL
from tests.sampled import FULL
from tests.spark.bench import Bench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.skipif(FULL, reason="Spark reads all in make matrix")


def counted(rows: DataFrame, columns: list[str]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(repr(value) for value in row) for row in rows.select(*columns).collect())


def test_each_table_reads_as_spark_reads_it(healthy: Bench) -> None:
    lake, here = healthy.engine.lake, []
    for table in ALL:
        if not lake.delta.exists(table.name):
            continue
        few = lake.read(table.name)
        whole = lake.spark.read.format("delta").load(lake.delta.path(table.name))
        assert dict(few.dtypes) == dict(whole.dtypes), table.name
        assert counted(few, whole.columns) == counted(whole, whole.columns), table.name
        here += [table.name] if whole.inputFiles() and not few.inputFiles() else []
    assert {"foreign", "primary", "joined", "registry", "pending", "quarantine"} <= set(here)


def test_an_older_version_reads_as_it_was(healthy: Bench) -> None:
    lake = healthy.engine.lake
    last = lake.delta.version("registry")
    older = next(
        at for at in reversed(range(last)) if lake.read("registry", at).count() < lake.read("registry").count()
    )
    few, whole = (
        lake.read("registry", older),
        lake.spark.read.format("delta").option("versionAsOf", older).load(lake.delta.path("registry")),
    )
    assert not few.inputFiles()
    assert counted(few, whole.columns) == counted(whole, whole.columns)


@pytest.mark.parametrize("most", [(1, 1 << 20), (20_000, 100)])
def test_many_rows_are_left_to_spark(healthy: Bench, monkeypatch: pytest.MonkeyPatch, most: tuple[int, int]) -> None:
    lake = healthy.engine.lake
    assert not lake.read("joined").inputFiles()
    few = counted(lake.read("joined"), ["event_id", "event_time"])
    monkeypatch.setattr(small_reads, "_ON_DISK", most)
    assert lake.read("joined").inputFiles()
    assert counted(lake.read("joined"), ["event_id", "event_time"]) == few


def test_records_that_are_long_once_unpacked_are_left_to_spark(healthy: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_reads, "_UNPACKED", 1_000)
    assert healthy.engine.lake.read("joined").inputFiles()
