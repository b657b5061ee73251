"""`engine: spark`: what its commits answer, and lakes that change their engine between two batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from pyspark.sql import functions as F

from clickjoin.dates import ledger
from clickjoin.engines.spark import SparkTables
from clickjoin.engines.spark.commits import Commits
from clickjoin.engines.tables_port import UnderWay
from clickjoin.kernel.adapter import Adapter
from clickjoin.model.errors import AdapterError, DateBusy, LakeError
from clickjoin.model.ids import moment
from clickjoin.model.span import Day
from clickjoin.model.txn import Txn
from clickjoin.schemas import BOUNDARY, DATES, FOREIGN, METRICS, REGISTRY
from clickjoin.spark.session import another, planned_at_once
from tests.sampled import in_full
from tests.spark.bench import Bench, click, query

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
Q = query("q")


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> SparkTables:
    """A lake with two small tables and a registry."""
    made = SparkTables(spark, str(tmp_path))
    assert [made.create(table) for table in (BOUNDARY, METRICS, REGISTRY)] == [True] * 3
    assert not made.create(BOUNDARY)
    return made


def bound(shard: int) -> dict[str, Any]:
    return {"shard": shard, "boundary": AT, "at": AT}


def shards(tables: SparkTables) -> list[int]:
    return sorted(tables.read("registry_boundary")["shard"].to_pylist())


def test_rows_come_once_a_transaction(tables: SparkTables) -> None:
    """Delta skips the second write and does not say so; its nonce is in no entry."""
    assert tables.append("registry_boundary", [bound(1)], Txn("a", 1))
    assert not tables.append("registry_boundary", [bound(2)], Txn("a", 1))
    assert not tables.copy().append("registry_boundary", [bound(2)], Txn("a", 1))
    assert tables.append("registry_boundary", [bound(3)])
    assert shards(tables) == [1, 3]


def test_a_skipped_write_is_nobodys(tables: SparkTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the transaction came after this process had looked."""
    other = tables.copy()
    look = SparkTables.latest_txn_version

    def late(self: SparkTables, name: str, app_id: str) -> int:
        found = look(self, name, app_id)
        if self is tables:
            other.append(name, [bound(7)], Txn(app_id, 1))
        return found

    monkeypatch.setattr(SparkTables, "latest_txn_version", late)
    assert not tables.append("registry_boundary", [bound(8)], Txn("a", 1))
    assert shards(tables) == [7]


def test_a_transaction_without_rows_is_a_fence(tables: SparkTables) -> None:
    """Neither a write nor a MERGE of that number comes after it."""
    assert tables.commit_txn_only("registry", Txn("p/main/join", 3))
    assert not tables.commit_txn_only("registry", Txn("p/main/join", 3))
    claim = (
        "SELECT 'e' event_id, TIMESTAMP '2026-03-01 12:00:00' event_time, 'b' bucket, 0 shard, 't' token, "
        "'joined' outcome"
    )
    merge = f"MERGE INTO {{table}} t USING ({claim}) s ON t.event_id = s.event_id WHEN NOT MATCHED THEN INSERT *"
    assert tables.commits.run("registry", merge, Txn("p/main/join", 3)) is None
    assert tables.rows("registry") == 0
    assert tables.commits.run("registry", merge, Txn("p/main/join", 4)) == 1
    assert not tables.commits.run("registry", merge, Txn("p/main/join", 5))
    assert tables.rows("registry") == 1


def test_of_two_that_decide_by_the_same_rows_one_does(tables: SparkTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that comes while the MERGE runs is a conflict; run again, the MERGE sees it."""
    version = tables.version("registry_boundary")
    other, settings = SparkTables(another(tables.session()), tables.root), Commits._settings
    came: list[bool] = []

    def meanwhile(self: Commits, nonce: str, txn: Txn | None) -> Any:
        if self is tables.commits and not came:
            came.append(other.append("registry_boundary", [bound(1)]))
        return settings(self, nonce, txn)

    monkeypatch.setattr(Commits, "_settings", meanwhile)
    assert not tables.append_next("registry_boundary", version, bound(2), "t.shard = 1", Txn("fence", 1))
    assert came == [True]
    assert shards(tables) == [1]
    assert tables.append_next("registry_boundary", version, bound(3), "t.shard = 9")
    assert shards(tables) == [1, 3]


def test_a_table_that_a_killed_process_had_begun(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's CREATE TABLE refuses a folder that is not empty; what holds data of somebody else is left alone."""
    slept: list[float] = []
    tables = SparkTables(spark, str(tmp_path), sleep=slept.append)
    begun = tmp_path / "registry/_delta_log"
    begun.mkdir(parents=True)
    (begun / ".00000000000000000000.json.tmp").touch()
    assert tables.create(REGISTRY)
    assert slept  # another process might have been at it
    theirs = tmp_path / "foreign/part-0.parquet"
    theirs.parent.mkdir()
    theirs.touch()
    with pytest.raises(LakeError, match="foreign: holds files, and no table"):
        tables.create(FOREIGN)
    assert theirs.exists()


def test_rows_of_batches_under_way_stay(spark: SparkSession, tmp_path: Path) -> None:
    """A DELETE fixes its version after the question: what is planned later is known by its replica and number."""
    made = SparkTables(spark, str(tmp_path))
    made.create(FOREIGN)
    rows = [("main", 1), ("main", 2), ("main", 3), ("west", 1), ("west", 9)]
    some = [
        dict.fromkeys(FOREIGN.names) | {"bucket": "a", "replica": r, "batch": n, "event_id": f"{r}{n}"} for r, n in rows
    ]
    made.append("foreign", some)
    gone = made.drop_buckets("foreign", "b", lambda: UnderWay([2], {"main": 3, "west": 8}))
    assert gone.rows == 3
    assert sorted(made.read("foreign")["event_id"].to_pylist()) == ["main2", "west9"]


@in_full
def test_a_lake_changes_its_engine_between_batches(make: Callable[..., Bench]) -> None:
    """Each takes up what the other has left; every commit of the registry under Spark is a MERGE."""
    bench = make(engine="spark")
    bench.queries(Q)
    bench.clicks(click("a", 10, Q), click("late", 10, query("r", 5)), "{broken")
    bench.join()
    use(bench, "arrow")
    bench.clicks(click("a", 10, Q), click("b", 20, Q))
    bench.join()
    use(bench, "spark")
    bench.queries(query("r", 5))
    bench.clicks(click("b", 20, Q), click("c", 30, Q))
    bench.join()
    bench.clock.now += 60
    while bench.engine.retry_once():
        pass
    joined = sorted(row["event_id"].split(":")[0] for row in bench.engine.lake.delta.read("joined").to_pylist())
    assert joined == ["a", "b", "c", "late"]
    claims = [row["event_id"] for row in bench.engine.lake.delta.read("registry").to_pylist()]
    assert len(claims) == len(set(claims)) == 4
    history = bench.spark.sql(f"DESCRIBE HISTORY delta.`{bench.engine.lake.delta.path('registry')}`").collect()
    by_spark = [row["operation"] for row in history if row["userMetadata"]]
    assert by_spark.count("MERGE") >= 3
    assert set(by_spark) <= {"CREATE TABLE", "MERGE", "WRITE"}
    assert bench.engine.lake.delta.engine == "spark"


class Frames(Adapter):
    """Works on DataFrames: leaves events out before the look-up, and one after it."""

    columns: ClassVar[Mapping[str, str]] = {"host": "STRING"}

    def prepare(self, foreign: DataFrame) -> DataFrame:
        return foreign.where(~F.col("event_id").startswith("bot"))

    def merge(self, joined: DataFrame) -> DataFrame:
        kept = joined.where(~F.col("event_id").startswith("test"))
        return kept.select("event_id", "event_time", F.substring_index("event_id", ":", 1).alias("host"))


class Doubles(Frames):
    def merge(self, joined: DataFrame) -> DataFrame:
        return super().merge(joined).unionAll(super().merge(joined))


def test_an_adapter_of_dataframes(make: Callable[..., Bench]) -> None:
    """What it leaves out is filtered; what it may not give is refused before anything is claimed."""
    bench = make(engine="spark", adapter=f"{__name__}:Doubles")
    bench.queries(Q)
    bench.clicks(click("a", 10, Q), click("bot", 10, Q), click("test", 10, Q), click("late", 10, query("r", 5)))
    with pytest.raises(AdapterError, match="merge made two rows of one event, such as a:"):
        bench.join()
    assert bench.engine.lake.delta.rows("registry") == 0
    bench.file.write_text(bench.file.read_text().replace(":Doubles", ":Frames"))
    bench.reload()
    assert bench.join()["filtered"] == 2
    assert [row["host"] for row in bench.engine.lake.delta.read("joined").to_pylist()] == ["a"]
    assert bench.engine.waiting().all == 1


def use(bench: Bench, engine: str) -> None:
    """Go on with another engine."""
    bench.file.write_text(re.sub(r"engine: \w+", f"engine: {engine}", bench.file.read_text()))
    bench.reload()


def test_a_date_is_held_by_one(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hold that is put off while another run decides that it is over keeps the date."""
    made, day, now = SparkTables(spark, str(tmp_path)), Day(date(2026, 3, 1)), [1000.0]
    made.create(DATES)
    first, _ = ledger._take(made, day, 30, lambda: now[0])
    now[0] += 31
    holds, came = ledger._holds, list[bool]()

    def late(tables: SparkTables, of: Day) -> Any:
        found = holds(tables, of)
        if not came:
            came.append(made.append("dates", [ledger._row(day, first, moment(int(now[0] * 1e6)), 30)]))
        return found

    monkeypatch.setattr(ledger, "_holds", late)
    with pytest.raises(DateBusy, match="another run works on this date"):
        ledger._take(made.copy(), day, 30, lambda: now[0])
    now[0] += 31
    second, over = ledger._take(made, day, 30, lambda: now[0])
    assert over == [first]
    ledger._end(made, day, [second, *over])
    assert made.rows("dates") == 0


@pytest.mark.parametrize(("events", "adaptive"), [(300, "false"), (300_000, "true")])
def test_how_a_batch_is_planned_ends_with_it(spark: SparkSession, events: int, adaptive: str) -> None:
    """What comes next in the session may read a table of any size."""
    names = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")
    before = [spark.conf.get(name) for name in names]
    with suppress(KeyboardInterrupt), planned_at_once(spark, events):
        assert [spark.conf.get(name) for name in names] == [adaptive, "1" if adaptive == "false" else before[1]]
        raise KeyboardInterrupt
    assert [spark.conf.get(name) for name in names] == before == ["true", before[1]]
