"""Adapters: the two that are shipped, and every way to break the contract, before anything is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from pyspark.sql import functions as F

from clickjoin.kernel.adapter import Adapter, BothRecords
from clickjoin.model.errors import AdapterError
from tests.spark.bench import Bench, click, event_id, query
from tests.spark.count import agrees

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Q1 = query("q1", campaign="all", propensity_score=0.25)
Q2 = query("q2", 1, campaign=None, propensity_score="high")


class Raises(BothRecords):
    def prepare(self, foreign: DataFrame) -> DataFrame:
        raise RuntimeError("in Python")


class RaisesInMerge(BothRecords):
    def merge(self, joined: DataFrame) -> DataFrame:
        return joined.select("no_such_column")


class RaisesOnARow(BothRecords):
    def prepare(self, foreign: DataFrame) -> DataFrame:
        return foreign.withColumn("payload", F.raise_error(F.lit("on this row")).cast("string"))


class RaisesOnARowInMerge(BothRecords):
    def merge(self, joined: DataFrame) -> DataFrame:
        return super().merge(joined).withColumn("foreign", F.raise_error(F.lit("on this row")).cast("string"))


class DropsId(BothRecords):
    def merge(self, joined: DataFrame) -> DataFrame:
        return super().merge(joined).drop("event_id")


class DropsPrimaryTime(BothRecords):
    def prepare(self, foreign: DataFrame) -> DataFrame:
        return foreign.drop("primary_time")


class DropsColumn(BothRecords):
    def merge(self, joined: DataFrame) -> DataFrame:
        return super().merge(joined).drop("primary")


class Doubles(BothRecords):
    def prepare(self, foreign: DataFrame) -> DataFrame:
        return foreign.unionAll(foreign)


class DoublesInMerge(BothRecords):
    def merge(self, joined: DataFrame) -> DataFrame:
        return super().merge(joined.crossJoin(joined.sparkSession.range(2)))


class Invents(BothRecords):
    def prepare(self, foreign: DataFrame) -> DataFrame:
        return foreign.withColumn("event_id", F.concat("event_id", F.lit("0")))


class InventsInMerge(BothRecords):
    def merge(self, joined: DataFrame) -> DataFrame:
        return super().merge(joined).withColumn("event_id", F.lit("made:1:1"))


class MovesTime(BothRecords):
    def merge(self, joined: DataFrame) -> DataFrame:
        return super().merge(joined).withColumn("event_time", F.date_trunc("minute", "event_time"))


class MakesTooFewColumns(BothRecords):
    columns: ClassVar[Mapping[str, str]] = {**BothRecords.columns, "extra": "STRING"}


class NotAFrame(BothRecords):
    def merge(self, joined: DataFrame) -> DataFrame:
        return None  # type: ignore[return-value]


class CommonNames(Adapter):
    """Columns of the output with names that the batch's own rows have too."""

    columns: ClassVar[Mapping[str, str]] = {"status": "STRING", "path": "STRING", "offset": "BIGINT", "Batch": "STRING"}

    def merge(self, joined: DataFrame) -> DataFrame:
        made = {name: F.lit(at).cast(kind) for at, (name, kind) in enumerate(self.columns.items())}
        return joined.select("event_id", "event_time", *(value.alias(name) for name, value in made.items()))


def test_typed_click(make: Any) -> None:
    bench = make(adapter="clickjoin.examples.adapters:TypedClick")
    bench.queries(Q1, Q2)
    bench.clicks(click("a", 2.5, Q1, item_id=7, position=3), click("b", 2, Q2, item_id="x"))
    assert bench.join() == {"primary_in": 2, "events_in": 2, "joined": 2}
    columns = ("event_id", "primary_id", "item_id", "position", "campaign", "propensity", "delay_seconds", "token")
    assert bench.rows("joined", *columns) == [
        (event_id("a", 2.5), Q1["event_id"], 7, 3, "all", 0.25, 2.5, "bench/main/join/1"),
        (event_id("b", 2), Q2["event_id"], None, None, None, None, 1.0, "bench/main/join/1"),
    ]


def test_top_positions(make: Any) -> None:
    bench = make(adapter="clickjoin.examples.adapters:TopPositions")
    late = query("late")
    bench.queries(Q1)
    places = [("a", 1, Q1), ("b", 2, Q1), ("c", 3, Q1), ("d", 9, late), ("e", 1, late)]
    bench.clicks(*(click(host, 2, of, position=position) for host, position, of in places))
    assert bench.join() == {"primary_in": 1, "events_in": 5, "joined": 2, "filtered": 2, "pending": 1}
    assert [row[1:] for row in bench.rows("joined", "event_id", "price")] == [(0.25,), (0.1,)]
    assert bench.places() == {"joined": ["a", "b"], "filtered": ["c", "d"], "pending": ["e"]}
    assert {host: outcome for host, (_, outcome) in bench.claims().items()} == {
        "a": "joined",
        "b": "joined",
        "c": "filtered",
        "d": "filtered",
    }
    bench.queries(late)
    bench.clicks(click("c", 2, Q1, position=1))
    assert bench.join() == {"primary_in": 1, "events_in": 1, "repeats": 1}  # filtered once, filtered for ever
    assert bench.retry(after=10) == {"events_in": 1, "joined": 1}
    assert bench.rows("joined", "event_id", "price")[-1] == (event_id("e", 2), 0.25)
    assert agrees(bench)


@pytest.fixture(scope="module")
def broken(make: Any) -> Bench:
    """A pipeline with one planned batch that no adapter below gets through."""
    bench: Bench = make()
    bench.queries(Q1)
    bench.clicks(click("a", 2, Q1), click("b", 3, Q1))
    assert bench.engine.join.next_join()
    return bench


BROKEN = [
    (Raises, "prepare raised RuntimeError: in Python. Fix the adapter; nothing of this batch was claimed"),
    (RaisesInMerge, "merge raised AnalysisException: .*no_such_column"),
    (RaisesOnARow, "prepare raised .* on some row: .*on this row"),
    (RaisesOnARowInMerge, "merge raised .* on some row: .*on this row"),
    (DropsId, "merge dropped event_id. Keep or make these columns"),
    (DropsPrimaryTime, "prepare dropped primary_time. Keep"),
    (DropsColumn, "merge dropped primary. Keep"),
    (MakesTooFewColumns, "merge_table dropped extra. Fix"),
    (Doubles, "prepare made two rows of one event, such as [ab]:1:.*Give one row at most for each event_id"),
    (DoublesInMerge, "merge made two rows of one event, such as [ab]:1:"),
    (Invents, "prepare gave an event that was not there: [ab]:1:.*Keep event_id and event_time as they are"),
    (InventsInMerge, "merge (made two rows of one event, such as|gave an event that was not there:) made:1:1"),
    (MovesTime, "merge gave an event that was not there: [ab]:1:"),
    (NotAFrame, "merge raised AttributeError: "),
]


@pytest.mark.parametrize(("adapter", "message"), BROKEN, ids=lambda item: getattr(item, "__name__", ""))
def test_broken(broken: Bench, adapter: type[Adapter], message: str) -> None:
    engine = broken.replica("main")
    engine.adapter = adapter()
    with pytest.raises(AdapterError, match=f"(?s)adapter clickjoin.joiner.adapter:BothRecords: {message}") as caught:
        engine.join_once()
    assert not caught.value.retryable
    assert broken.claims() == broken.places() == {}
    assert broken.replica("main").join.unsettled().number == 1


def test_fixed(broken: Bench) -> None:
    """The same batch, once the adapter is fixed."""
    assert broken.join() == {"primary_in": 1, "events_in": 2, "joined": 2}
    assert broken.places() == {"joined": ["a", "b"]}


def test_columns_may_have_any_name(make: Any) -> None:
    bench = make(adapter=f"{__name__}:CommonNames")
    bench.queries(Q1)
    bench.clicks(click("a", 2, Q1))
    bench.join()
    assert bench.rows("joined", *CommonNames.columns) == [("0", "1", 2, "3")]
