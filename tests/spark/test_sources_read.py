"""Sources on Spark: splits are read in parallel, each record once, by workers that know no clickjoin."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clickjoin.kernel import chunk
from clickjoin.sources.files.state import FileSplit
from clickjoin.sources.port import RECORDS_DDL
from tests.unit.sources_bench import BASE, Feed, events, spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_big_and_small_files_in_parallel(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "big.jsonl").write_bytes(events(0, 200_000) + b"broken\n")
    (tmp_path / "small.jsonl").write_bytes(events(200_000, 200_100))
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(events(300_000, 300_100)))
    rows = "".join(f"h:1:{BASE + at},é\n" for at in range(400_000, 400_100))
    (tmp_path / "table.csv").write_text("id,x\n" + rows, encoding="utf-8")
    feed = Feed(tmp_path, "*")
    splits = feed.plan().splits
    frame = feed.source.read(spark, splits, spec())
    assert frame.schema.simpleString() == spark.createDataFrame([], RECORDS_DDL).schema.simpleString()
    assert frame.rdd.getNumPartitions() == sum(piece.bytes for piece in splits) // chunk.PIECE
    good = frame.where("reason IS NULL")
    found = good.selectExpr(f"unix_micros(event_time) - {BASE} AS number", "event_id", "payload").toArrow()
    expected = [*range(200_100), *range(300_000, 300_100), *range(400_000, 400_100)]
    assert sorted(found["number"].to_pylist()) == expected
    assert sorted(found["event_id"].to_pylist()) == sorted(f"h:1:{BASE + at}" for at in expected)
    assert '{"id":"h:1:1574562822400000","x":"é"}' in set(found["payload"].to_pylist())
    (bad,) = frame.where("reason IS NOT NULL").collect()
    assert (bad.reason, bytes(bad.raw), bad.offset, bad.length) == (
        "broken-json",
        b"broken\n",
        len(events(0, 200_000)),
        7,
    )


def test_few_bytes_are_one_task_and_what_is_lost_is_a_row(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(events(0, 10))
    feed = Feed(tmp_path)
    lost = FileSplit("g", str(tmp_path / "gone.jsonl"), 5, 50, 4, "00", 4, "00", 1).to_split()
    frame = feed.source.read(spark, [*feed.plan().splits, lost], spec())
    assert frame.rdd.getNumPartitions() == 1
    assert frame.where("reason IS NULL").count() == 10
    (row,) = frame.where("reason IS NOT NULL").collect()
    assert (row.reason, row.source_partition, row.offset, row.length, row.raw) == ("source-lost", "g", 5, 45, None)
    assert feed.source.read(spark, [], spec()).count() == 0


def test_workers_refuse_other_bytes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(events(0, 10))
    feed = Feed(tmp_path)
    frame = feed.source.read(spark, feed.plan().splits, spec())
    path.write_bytes(events(10, 20))
    with pytest.raises(Exception, match=r"a\.jsonl: the bytes before offset .* are not the planned ones"):
        frame.collect()
