"""The large tables: appended once a transaction, inserted once an id, whoever races for it, and read in part."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from delta.exceptions.base import ConcurrentAppendException
from pyspark.sql import functions as F

from clickjoin.engines.arrow import ArrowLake, ArrowTables, rewrite_rows
from clickjoin.kernel.parquet_rows import ends_of
from clickjoin.lake.lost_files import bad_files
from clickjoin.model.errors import CommitConflict, LakeError
from clickjoin.model.extent import Extent
from clickjoin.model.ids import MICROS, bucket_of, moment
from clickjoin.model.txn import Txn
from clickjoin.schemas import ALL, BY_NAME, REGISTRY
from clickjoin.spark.session import configured
from tests.claims import merge_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * MICROS
HOUR = 3600 * MICROS
_TXN = "spark.databricks.delta.write.txnAppId"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[ArrowLake]:
    delta = ArrowTables(str(tmp_path))
    for table in ALL:
        delta.create(table)
    return ArrowLake(spark, str(tmp_path))


def claims(spark: SparkSession, token: str, ids: list[tuple[int, int]]) -> DataFrame:
    """Rows of the registry: (number, micros after START), on two shards."""
    rows = []
    for number, micros in ids:
        at = START + micros
        rows.append((f"e{number}", moment(at), bucket_of(at, 3600), number % 2, token, "joined"))
    return spark.createDataFrame(rows, REGISTRY.ddl)


def extent_of(ids: list[tuple[int, int]]) -> Extent:
    times = [START + micros for _, micros in ids]
    buckets = tuple({bucket_of(at, 3600) for at in times})
    return Extent(len(ids), buckets, moment(min(times)), moment(max(times)))


def insert(lake: ArrowLake, token: str, ids: list[tuple[int, int]], version: int = 1) -> int | None:
    view = f"v_{token}"
    claims(lake.spark, token, ids).createOrReplaceTempView(view)
    return merge_rows(lake, view, extent_of(ids).sql("t", {number % 2 for number, _ in ids}), Txn(token, version))


def owners(lake: ArrowLake) -> dict[str, str]:
    rows = ArrowTables(lake.delta.path("")[:-1]).read("registry").to_pylist()
    assert len({row["event_id"] for row in rows}) == len(rows)
    return {row["event_id"]: row["token"] for row in rows}


def test_insert_new(lake: ArrowLake) -> None:
    assert insert(lake, "a", [(1, 0), (2, HOUR)]) == 2
    assert insert(lake, "b", [(2, HOUR), (3, 5 * HOUR)]) == 1
    assert owners(lake) == {"e1": "a", "e2": "a", "e3": "b"}
    assert insert(lake, "a", [(4, 0)]) is None  # the same transaction, with other candidates
    assert lake.delta.commit_txn_only("registry", Txn("c", 1))
    assert insert(lake, "c", [(5, 0)]) is None
    assert insert(lake, "c", [(2, HOUR)], version=2) == 0
    assert owners(lake) == {"e1": "a", "e2": "a", "e3": "b"}
    assert lake.spark.conf.get(_TXN, "gone") == "gone"


def test_settings_are_gone_after_an_error(lake: ArrowLake) -> None:
    with pytest.raises(Exception, match="no_such_view"):
        merge_rows(lake, "no_such_view", "TRUE", Txn("a", 1))
    assert lake.spark.conf.get(_TXN, "gone") == "gone"


def race(
    lake: ArrowLake, first: list[tuple[int, int]], second: list[tuple[int, int]], at: int
) -> tuple[list[Any], int]:
    """Two sessions insert at once; what each inserted, and how often a commit was run again."""
    barrier, root = Barrier(2, timeout=60), lake.delta.path("")[:-1]

    def work(name: str, ids: list[tuple[int, int]]) -> tuple[int | None, int]:
        mine = ArrowLake(configured(lake.spark.newSession()), root)
        barrier.wait()
        return insert(mine, f"{name}{at}", ids), mine.conflict_reruns

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(work, ("a", "b"), (first, second)))
    return [item[0] for item in done], sum(item[1] for item in done)


def test_a_race_for_the_same_ids(lake: ArrowLake) -> None:
    """Exactly one owner an id; who comes second runs again, which is counted, and finds the ids taken."""
    reruns = 0
    for at in range(4):
        base = at * 100
        first, second = [(base + n, 0) for n in range(20)], [(base + n, 0) for n in range(10, 30)]
        inserted, more = race(lake, first, second, at)
        reruns += more
        found = {name: token for name, token in owners(lake).items() if int(name[1:]) >= base}
        assert len(found) == sum(inserted) == 30
        assert sorted(inserted) == [10, 20]
        assert sorted(list(found.values()).count(f"{name}{at}") for name in "ab") == [10, 20]
        if reruns:
            break
    assert reruns


def test_other_buckets_or_shards_do_not_race(lake: ArrowLake) -> None:
    for at, second in enumerate(([(n, HOUR) for n in (10, 12)], [(n, 0) for n in (21, 23)])):
        first = [(n, 0) for n in ((0, 2) if at == 0 else (20, 22))]
        inserted, reruns = race(lake, first, second, at)
        assert (inserted, reruns) == ([2, 2], 0)


def test_append_once(lake: ArrowLake) -> None:
    for token, ids in (("a", [(1, 0)]), ("other", [(9, 0)])):
        lake.append("registry", claims(lake.spark, token, ids), Txn("a", 1))
    lake.append("registry", claims(lake.spark, "b", [(2, 0)]), Txn("b", 1))
    assert owners(lake) == {"e1": "a", "e2": "b"}
    lake.append("registry", claims(lake.spark, "c", []), Txn("c", 3))
    assert lake.delta.latest_txn_version("registry", "c") == 3


@pytest.mark.parametrize(("name", "order", "groups"), [
    ("primary", "event_time", [2048, 2048, 904]), ("registry", "event_time", [2048, 2048, 904]),
    ("registry", "event_id", [2048, 2048, 904]), ("pending", "event_time", [2048, 2048, 904]),
    ("joined", "event_time", [5000]),
])  # fmt: skip
def test_rewritten_events_lie_in_short_row_groups(
    lake: ArrowLake, spark: SparkSession, name: str, order: str, groups: list[int]
) -> None:
    columns = {column.name: F.lit(None).cast(column.type) for column in BY_NAME[name].columns}
    known = {"event_id": F.concat(F.lit("e"), F.col("id")), "event_time": F.timestamp_micros(F.col("id") + START)}
    known |= {"bucket": F.lit(bucket_of(START, 3600)), "batch": F.lit(1).cast("bigint"), "shard": F.lit(0)}
    known |= {"event_date": F.timestamp_micros(F.col("id") + START).cast("date")}
    known = {column: value for column, value in known.items() if column in columns}
    rows = spark.range(0, 2500, 1, 1).withColumns(columns | known).select(*BY_NAME[name].names)
    for version in (1, 2):
        lake.append(name, rows, Txn("test", version))
    limit = "parquet.block.row.count.limit"
    before = spark.conf.get(limit, "none")
    assert lake.rewrite(name, order=order) == 2
    assert spark.conf.get(limit, "none") == before
    file = f"{lake.delta.path(name)}/{lake.delta.files(name)['path'].to_pylist()[0]}"
    written = pq.read_metadata(file)
    assert [written.row_group(number).num_rows for number in range(written.num_row_groups)] == groups
    assert ends_of(written, "event_time").least.min() == START


def test_delete_matched(lake: ArrowLake) -> None:
    ids = [(1, 0), (2, HOUR), (3, HOUR)]
    insert(lake, "a", ids)
    gone = claims(lake.spark, "a", ids[:2]).unionAll(claims(lake.spark, "b", ids[2:]))
    assert [lake.delete_matched("registry", gone, extent_of(ids)) for _ in range(2)] == [2, 0]
    assert owners(lake) == {"e3": "a"}  # named with the token of another


def test_delete_matched_by_tasks(lake: ArrowLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite_rows, "_ROWS_HERE", 0)
    ids = [(n, n * HOUR) for n in range(6)]
    insert(lake, "a", ids)
    assert lake.delete_matched("registry", claims(lake.spark, "a", ids[:5]), extent_of(ids)) == 5
    assert owners(lake) == {"e5": "a"}


def test_delete_matched_leaves_a_damaged_file_alone(lake: ArrowLake) -> None:
    ids = [(1, 0), (2, HOUR)]
    insert(lake, "a", ids)
    path = lake.delta.files("registry")["path"].to_pylist()[0]
    Path(lake.delta.path("registry"), path).write_bytes(b"torn")
    with lake.without(bad_files(lake.delta, "registry")):
        assert lake.delete_matched("registry", claims(lake.spark, "a", ids), extent_of(ids)) == 1
    assert lake.delta.files("registry")["path"].to_pylist() == [path]


def test_read_extent_is_what_the_whole_table_says(lake: ArrowLake) -> None:
    """Rows from pruned files are those that Spark finds by itself, at the edges of milliseconds too."""
    rng = random.Random(1)
    ids = [(n, rng.randrange(6) * HOUR + rng.choice([0, 1, 999, 1000, 1001, rng.randrange(HOUR)])) for n in range(60)]
    for at in range(0, 60, 20):
        lake.append("registry", claims(lake.spark, f"t{at}", ids[at : at + 20]), Txn("rows", at + 1))
    for _ in range(8):
        wanted = rng.sample(ids, rng.randrange(1, 4))
        extent, shards = extent_of(wanted), rng.choice([None, {0}, {0, 1}])
        expected = lake.read("registry").where(extent.sql(shards=shards)).collect()
        found = lake.read_extent("registry", extent, shards=shards).select(*REGISTRY.names).collect()
        assert sorted(found) == sorted(expected)
        if shards is None:
            assert {f"e{number}" for number, _ in wanted} <= {row["event_id"] for row in found}
    assert lake.read_extent("registry", Extent(0)).collect() == []
    assert lake.read_extent("registry", Extent(0)).columns == REGISTRY.names


def test_read_extent_stays_what_it_was(lake: ArrowLake) -> None:
    insert(lake, "a", [(1, 0)])
    seen = lake.read_extent("registry", extent_of([(1, 0)]))
    insert(lake, "b", [(2, 0)])
    assert [row["token"] for row in seen.collect()] == ["a"]
    assert lake.read("registry", lake.delta.version("registry") - 1).count() == 1


def test_conflicts_are_run_again_a_while_and_then_said(lake: ArrowLake) -> None:
    slept: list[float] = []
    lake.sleep = slept.append

    def refused() -> None:
        raise ConcurrentAppendException("[DELTA_CONCURRENT_APPEND] Files were added")

    with pytest.raises(CommitConflict, match=r"refused 30 times in a row\. Too many writers in one bucket") as caught:
        lake.rerun("registry", refused)
    assert caught.value.retryable
    assert len(slept) == lake.conflict_reruns == 30
    assert all(0 < pause <= 3.2 for pause in slept)


def test_require(lake: ArrowLake, spark: SparkSession, tmp_path: Path) -> None:
    lake.require()
    (tmp_path / "registry").rename(tmp_path / "elsewhere")
    with pytest.raises(LakeError, match=r"the registry is missing while outputs exist\. Never start an empty one"):
        ArrowLake(spark, str(tmp_path)).require()


def test_named_rows_alone_where_the_keys_are_few(lake: ArrowLake, monkeypatch: pytest.MonkeyPatch) -> None:
    held = [(number, number) for number in range(20)]
    assert insert(lake, "a", held) == 20
    keys = claims(lake.spark, "k", [(3, 3), (7, 8), (99, 9)]).select("event_id", "event_time")
    span = Extent(3, extent_of(held).buckets, extent_of(held).low, extent_of(held).high)

    def found(keys: DataFrame) -> set[str]:
        return {row["event_id"] for row in lake.read_named("registry", span, keys).collect()}

    assert len(found(keys)) == 20  # too few to be worth it
    monkeypatch.setattr("clickjoin.lake.spark_reader._MIN_ROWS", 20)
    assert found(keys) == {"e3"}
    assert found(keys.select("event_id")) == {"e3", "e7"}
    monkeypatch.setattr("clickjoin.lake.spark_reader._MAX_KEYS", 2)
    assert len(found(keys)) == 20
