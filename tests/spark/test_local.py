"""Slices that this process parses itself end in the same tables, row by row, as those that Spark's workers parse."""

from __future__ import annotations

import datetime
import gzip
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from clickjoin.engines.arrow import dealing
from clickjoin.kernel.adapter import ArrowAdapter
from clickjoin.kernel.types import arrow_type, delta_type
from clickjoin.model.errors import AdapterError, LakeError
from clickjoin.sources.files.source import FilesSource
from tests.sampled import some
from tests.spark.bench import Bench, click, event_id, query
from tests.spark.count import agrees

Q, LATE, OLD = query("q"), query("late", 1), query("old", -40_000)
DISTANT = [click(f"far{n}", 60 - 7 * n * 3600, Q) for n in range(12)]


def filled(make: Any, local: str, **fields: Any) -> Bench:
    """Good and bad records of all kinds, over many buckets; two batches and a retry."""
    bench: Bench = make(batch={"driver_bytes": local}, limits={"max_record": "6MB"}, **fields)
    bench.queries(Q, Q, OLD, "{broken", "", "[]")
    bench.clicks(click("a", 2, Q), click("a", 2, Q), click("b", 3, LATE), *DISTANT, "x" * 9_000_000, "{}")
    (bench.folder / "foreign" / "1.jsonl.gz").write_bytes(gzip.compress(json.dumps(click("gz", 5, OLD)).encode()))
    text = f'event_id,query_id,note\n{event_id("csv", 7)},{Q["event_id"]},"é, 日"\nbad,,\n'
    (bench.folder / "foreign" / "2.csv").write_text(text, encoding="utf-8")
    bench.clock.now += 3600  # a packed log is read once it has come to rest
    while bench.engine.join_once():
        pass
    bench.queries(LATE)
    bench.join()
    bench.retry(after=20)
    return bench


def tables(bench: Bench) -> dict[str, list[Any]]:
    """All rows, of logs that lie in another folder and are other files each time."""
    found = bench.all_tables()
    for name in ("journal", "metrics"):
        found.pop(name)
    text = repr(found).replace(str(bench.folder), "")
    for stream in ("primary", "foreign"):
        for row in bench.engine.lake.delta.read(stream, columns=["source_partition", "path"]).to_pylist():
            text = text.replace(row["source_partition"], row["path"].rsplit("/", 1)[-1])
        for row in bench.engine.lake.delta.read("quarantine", columns=["source_partition", "path"]).to_pylist():
            text = text.replace(row["source_partition"], row["path"].rsplit("/", 1)[-1])
    return sorted(text.split("), ("))


def test_the_same_rows(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = filled(make, "0B")
    assert agrees(spark)
    monkeypatch.setattr(FilesSource, "read", None)
    here = filled(make, "20MB")
    assert tables(here) == tables(spark)
    assert here.accounts() == spark.accounts()


def test_files_say_what_they_hold(make: Any) -> None:
    """Statistics by which a batch's files are found, as Spark writes them."""
    found = []
    for local in ("0B", "20MB"):
        bench = filled(make, local)
        actions = bench.engine.lake.delta.files("foreign").to_pylist()
        held: dict[str, Any] = {}
        for file in actions:
            rows, *ends = held.get(file["partition.bucket"], (0, "~", "", 9, 0))
            names = ("min.event_id", "max.event_id", "min.batch", "max.batch")
            ends = [(min, max)[n % 2](end, file[name]) for n, (end, name) in enumerate(zip(ends, names, strict=True))]
            held[file["partition.bucket"]] = (rows + file["num_records"], *ends)
        assert all(file["max.event_time"] >= file["min.event_time"] for file in actions)
        found.append(held)
    assert found[0] == found[1]


def test_too_many_for_one_process(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte over the limit is the workers' to read."""
    line = json.dumps(click("a", 2, Q)) + "\n"
    bench = make(batch={"driver_bytes": f"{len(line) - 1}B"})
    bench.clicks(json.loads(line))
    monkeypatch.setattr(FilesSource, "read_here", None)
    assert bench.join() == {"events_in": 1, "pending": 1}


class OfEveryType(ArrowAdapter):
    """A column of each type that an output may have, null for every other row."""

    columns: ClassVar[Mapping[str, str]] = {
        "a text": "STRING", "moment": "TIMESTAMP", "small": "INT", "large": "BIGINT", "price": "DECIMAL(12, 4)",
        "score": "DOUBLE", "weight": "FLOAT", "good": "BOOLEAN", "raw": "BINARY", "day": "DATE",
    }  # fmt: skip

    def merge_table(self, joined: pa.Table) -> pa.Table:
        at = joined["event_time"]
        values = {
            "a text": "é", "moment": at, "small": -7, "large": 10**15, "price": Decimal("-12.3456"), "score": 0.1,
            "weight": 0.1, "good": True, "raw": b"\x00\xff", "day": at,
        }  # fmt: skip
        mine = pc.starts_with(joined["event_id"], "a")
        rows = joined.select(["event_id", "event_time"])
        for name, kind in self.columns.items():
            held = arrow_type(delta_type(kind))
            value = values[name].cast(held) if values[name] is at else pa.scalar(values[name], held)
            rows = rows.append_column(name, pc.if_else(mine, value, pa.scalar(None, held)))
        return rows


@pytest.mark.parametrize("local", ["0B", "4MB"])
def test_columns_of_every_type(make: Any, local: str) -> None:
    """And of an adapter before: its rows keep what they had, and new ones have nothing there."""
    bench = make(batch={"driver_bytes": local}, adapter=f"{__name__}:OfEveryType")
    bench.queries(Q)
    bench.clicks(click("a", 2, Q), click("b", 3, Q))
    bench.join()
    bench.file.write_text(
        bench.file.read_text().replace(f"{__name__}:OfEveryType", "clickjoin.joiner.adapter:BothRecords")
    )
    bench.reload()
    bench.clicks(click("c", 4, Q))
    bench.join()
    rows = bench.rows("joined", *OfEveryType.columns)
    at = datetime.datetime(2026, 3, 1, 12, 0, 2, tzinfo=datetime.UTC)
    weight = rows[0][6]
    assert rows[0] == ("é", at, -7, 10**15, Decimal("-12.3456"), 0.1, weight, True, b"\x00\xff", at.date())
    assert weight == pytest.approx(0.1, abs=1e-7)
    assert rows[1:] == [(None,) * len(OfEveryType.columns)] * 2
    records = bench.rows("joined", "event_id", "foreign_record")
    assert [record is None for _, record in records] == [True, True, False]


@pytest.mark.parametrize("table", some(["registry", "joined", "foreign"], 2))
def test_deletion_vectors_are_refused(make: Any, table: str) -> None:
    """A file would hold rows that the table does not: claims that were taken back among them."""
    bench = make()
    path = bench.engine.lake.delta.path(table)
    bench.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    bench.queries(Q)
    bench.clicks(click("a", 2, Q), click("b", 3, LATE))
    with pytest.raises(LakeError, match=rf"{table}: has deletion vectors \(deletionVectors\).*RESTORE TABLE"):
        bench.join()
    assert not bench.spark.read.format("delta").load(bench.engine.lake.delta.path("joined")).count()


class Near(ArrowAdapter):
    """Leaves out clicks before noon, and keeps how long after the query the others came."""

    columns: ClassVar[Mapping[str, str]] = {"delay": "BIGINT", "note": "STRING"}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, delay (microseconds), note."""
        rows = joined.filter(pc.greater_equal(pc.hour(joined["event_time"]), 12))
        at, asked = (rows[name].cast(pa.int64()) for name in ("event_time", "primary_time"))
        rows = rows.append_column("delay", pc.subtract(at, asked)).append_column("note", rows["payload"])
        return rows.select(["event_id", "event_time", "delay", "note"])


@pytest.mark.parametrize("adapter", some([f"{__name__}:Near", "clickjoin.joiner.adapter:BothRecords"], 2))
def test_joined_here_or_by_tasks(make: Any, monkeypatch: pytest.MonkeyPatch, adapter: str) -> None:
    """All tables are the same, row by row: repeats, late queries, and what an adapter leaves out."""
    here = filled(make, "20MB", adapter=adapter)
    assert agrees(here)
    monkeypatch.setattr(dealing, "_ROWS_HERE", -1)
    tasks = filled(make, "20MB", adapter=adapter)
    assert tables(here) == tables(tasks)
    assert {place: len(hosts) for place, hosts in here.places().items()} == (
        {"joined": 16} if adapter.endswith("BothRecords") else {"joined": 10, "filtered": 6}
    )


def test_two_rows_of_one_event(make: Any) -> None:
    bench = make(adapter=f"{__name__}:Doubles")
    bench.queries(Q)
    bench.clicks(click("a", 2, Q))
    with pytest.raises(AdapterError, match="test_local:Doubles: merge_table made two rows of one event, such as a:1:"):
        bench.join()
    assert bench.claims() == bench.places() == {}


class Doubles(Near):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Each row twice."""
        rows = super().merge_table(joined)
        return pa.concat_tables([rows, rows])
