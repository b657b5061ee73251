"""Adapters: the two that are shipped, and every way to break the contract, before anything is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from clickjoin.kernel.adapter import Adapter, ArrowAdapter, BothRecords
from clickjoin.model.errors import AdapterError
from tests.spark.bench import Bench, click, event_id, query
from tests.spark.count import agrees

Q1 = query("q1", campaign="all", propensity_score=0.25)
Q2 = query("q2", 1, campaign=None, propensity_score="high")


class Raises(BothRecords):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        raise RuntimeError("in Python")


class DropsId(BothRecords):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        return super().merge_table(joined).drop_columns("event_id")


class DropsColumn(BothRecords):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        return super().merge_table(joined).drop_columns("primary_record")


class Doubles(BothRecords):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        rows = super().merge_table(joined)
        return pa.concat_tables([rows, rows])


class Invents(BothRecords):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        rows = super().merge_table(joined)
        return rows.set_column(0, "event_id", pa.array([f"made:1:{n}" for n in range(rows.num_rows)], pa.string()))


class MovesTime(BothRecords):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        rows = super().merge_table(joined)
        return rows.set_column(1, "event_time", pc.floor_temporal(rows["event_time"], unit="minute"))


class MakesTooFewColumns(BothRecords):
    columns: ClassVar[Mapping[str, str]] = {**BothRecords.columns, "extra": "STRING"}


class NotATable(BothRecords):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        return None  # type: ignore[return-value]


class CommonNames(ArrowAdapter):
    """Columns of the output with names that the batch's own rows have too."""

    columns: ClassVar[Mapping[str, str]] = {"status": "STRING", "path": "STRING", "offset": "BIGINT", "Batch": "STRING"}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        rows = joined.select(["event_id", "event_time"])
        for at, (name, kind) in enumerate(self.columns.items()):
            made = pa.array([at] * rows.num_rows, pa.int64())
            rows = rows.append_column(name, made if kind == "BIGINT" else made.cast(pa.string()))
        return rows


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
    assert bench.join() == {"primary_in": 1, "events_in": 5, "joined": 2, "filtered": 1, "pending": 2}
    assert [row[1:] for row in bench.rows("joined", "event_id", "price")] == [(0.25,), (0.1,)]
    assert bench.places() == {"joined": ["a", "b"], "filtered": ["c"], "pending": ["d", "e"]}
    assert {host: outcome for host, (_, outcome) in bench.claims().items()} == {
        "a": "joined",
        "b": "joined",
        "c": "filtered",
    }  # whether "d" is left out is known once its query is there
    bench.queries(late)
    bench.clicks(click("c", 2, Q1, position=1))
    assert bench.join() == {"primary_in": 1, "events_in": 1, "repeats": 1}  # filtered once, filtered for ever
    assert bench.retry(after=10) == {"events_in": 2, "joined": 1, "filtered": 1}
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
    (Raises, "merge_table raised RuntimeError: in Python. Fix the adapter; nothing of this batch was claimed"),
    (DropsId, "merge_table dropped event_id. Fix"),
    (DropsColumn, "merge_table dropped primary_record. Fix"),
    (MakesTooFewColumns, "merge_table dropped extra. Fix"),
    (Doubles, "merge_table made two rows of one event, such as [ab]:1:"),
    (Invents, "merge_table gave an event that was not there: made:1:"),
    (MovesTime, "merge_table gave an event that was not there: [ab]:1:"),
    (NotATable, "merge_table "),
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
