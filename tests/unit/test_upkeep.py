"""Dropping and trimming through the log: what must stay stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from clickjoin import maintain
from clickjoin.dispatcher.journal import Journal
from clickjoin.dispatcher.plan import BatchPlan
from clickjoin.dispatcher.trim import KEPT_BATCHES, trim
from clickjoin.events import MICROS
from clickjoin.lake import SmallTables, Txn, commits, upkeep
from clickjoin.lake.upkeep import LARGE, Heap, Size, drop_buckets, heaps, sizes
from clickjoin.sources.base import Position
from clickjoin.tables import BATCHES, FOREIGN

DAY = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def small(tmp_path: Path) -> SmallTables:
    tables = SmallTables(str(tmp_path))
    tables.create(BATCHES)
    tables.create(FOREIGN)
    return tables


def land(small: SmallTables, bucket: str, batch: int, rows: int = 2) -> None:
    table = small.open("foreign")
    schema = pa.schema(table.schema())
    data = [{"event_id": f"{bucket}{batch}{n}", "bucket": bucket, "batch": batch, "shard": 0} for n in range(rows)]
    whole = [{name: row.get(name) for name in schema.names} for row in data]
    write_deltalake(small.path("foreign"), pa.Table.from_pylist(whole, schema=schema), mode="append")


def buckets(small: SmallTables) -> dict[str, int]:
    return {bucket: size.rows for bucket, size in sorted(sizes(small, "foreign").items())}


def test_what_a_delete_keeps_is_on_disk(small: SmallTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """delta-rs itself flushes neither the file that it writes nor its commit."""
    flushed: list[str] = []
    monkeypatch.setattr(commits, "flush_data", lambda folder, name: flushed.append(name))
    monkeypatch.setattr(commits, "_flush", lambda uri, version, *_: flushed.append(str(version)))
    row = {"replica": "main", "sequence": "join", "state": "planned", "at": DAY, "snapshot": False, "plan": "{}"}
    small.append("batches", [row | {"batch": number} for number in (1, 2)])
    flushed.clear()
    assert upkeep.drop_batches(small, "batches", "main", "join", 2) == 1
    kept = small.files("batches")["path"].to_pylist()
    assert flushed == [*kept, str(small.version("batches"))]
    land(small, "a", 1)
    flushed.clear()
    drop_buckets(small, "foreign", "b")
    assert flushed == [str(small.version("foreign"))]
    assert upkeep.drop_batches(small, "batches", "main", "join", 2) == 0


def test_sizes_of_an_empty_table(small: SmallTables) -> None:
    assert sizes(small, "foreign") == {}
    assert drop_buckets(small, "foreign", "z") == Size()


def test_drop_whole_buckets(small: SmallTables) -> None:
    for number, bucket in enumerate("abc"):
        land(small, bucket, number + 1)
    gone = drop_buckets(small, "foreign", "c")
    assert (gone.files, gone.rows, gone.bytes > 0) == (2, 4, True)
    assert buckets(small) == {"c": 2}
    version = small.version("foreign")
    assert drop_buckets(small, "foreign", "c") == Size()
    assert small.version("foreign") == version


def test_rows_of_batches_under_way_stay(small: SmallTables) -> None:
    for number, bucket in enumerate("abcb"):
        land(small, bucket, number + 1)
    assert drop_buckets(small, "foreign", "d", lambda: [4]).rows == 2
    assert buckets(small) == {"b": 4, "c": 2}
    assert drop_buckets(small, "foreign", "d", lambda: [9]).rows == 6


def test_what_lands_while_it_looks_stays(small: SmallTables) -> None:
    """A batch that is planned and lands after the table's version was fixed is not among those asked for."""
    land(small, "a", 1)
    asked: list[int] = []

    def under_way() -> list[int]:
        asked.append(1)
        if len(asked) == 1:
            land(SmallTables(str(Path(small.path("foreign")).parent)), "a", 2)
            return []
        return [2]

    assert drop_buckets(small, "foreign", "b", under_way).rows == 0
    assert buckets(small) == {"a": 4}


def test_heaps(small: SmallTables, monkeypatch: pytest.MonkeyPatch) -> None:
    assert heaps(small, "foreign") == []
    for batch, bucket in enumerate("aaabbc", 1):
        land(small, bucket, batch, 2 if batch < 6 else 2000)
    found = {heap.bucket: heap for heap in heaps(small, "foreign")}
    assert {bucket: heap.files for bucket, heap in found.items()} == {"a": 3, "b": 2, "c": 1}
    assert all(heap.largest <= heap.bytes <= heap.largest * heap.files < LARGE for heap in found.values())
    monkeypatch.setattr(upkeep, "LARGE", found["c"].bytes)
    assert sorted(heap.bucket or "" for heap in heaps(small, "foreign")) == ["a", "b"]
    assert heaps(small, "batches") == []
    small.append("batches", [{"replica": "r", "sequence": "join", "batch": 1, "at": DAY}], Txn("t", 1))
    assert [(heap.bucket, heap.files) for heap in heaps(small, "batches")] == [(None, 1)]


@pytest.mark.parametrize(
    ("heap", "due"),
    [
        (Heap("2026-01-01-00", 4, 400, 100), True),
        (Heap("2026-01-01-00", 3, 300, 100), False),
        (Heap("2026-01-01-00", 9, 1000, 900), False),  # few rows came late
        (Heap("2026-01-01-00", 256, 1000, 900), True),
        (Heap("2026-01-01-11", 255, 255, 1), False),  # it is open yet
        (Heap("2026-01-01-11", 256, 256, 1), True),
    ],
)
def test_what_is_rewritten(monkeypatch: pytest.MonkeyPatch, heap: Heap, due: bool) -> None:
    now = datetime(2026, 1, 1, 11, 30, tzinfo=UTC)
    monkeypatch.setattr(maintain, "heaps", lambda *_: [heap])
    monkeypatch.setattr(maintain, "first_open", lambda *_: "2026-01-01-10")
    found = maintain._due(None, None, FOREIGN, now, maintain.FEWEST_IN_OPEN)  # type: ignore[arg-type]
    assert list(found) == ([heap.bucket] if due else [])


def test_journal_keeps_what_positions_are_rebuilt_from(small: SmallTables) -> None:
    journal = Journal(small, "p", "main", "join")
    last = KEPT_BATCHES + 40
    rows = []
    for number in range(1, last + 1):
        at = DAY + timedelta(minutes=number)
        place = Position("g1" if number > 5 else "g0", "a.log", 1, 1, number, number, 0, 0, "", 0, "")
        plan = BatchPlan(
            "p", "main", "join", number, int(at.timestamp() * MICROS),
            positions={"foreign": (place,)}, snapshot=(number - 1) % 100 == 0,
        )  # fmt: skip
        key = {"replica": "main", "sequence": "join", "batch": number, "at": at}
        rows.append({**key, "state": "planned", "snapshot": plan.snapshot, "plan": plan.to_json()})
        rows.append({**key, "state": "settled", "snapshot": False, "plan": '{"lost": {}}'})
    assert small.append("batches", rows, Txn("p/main/join/planned", last))
    assert small.fix("batches", Txn("p/main/join/settled", last))
    known = journal.load()
    late = DAY + timedelta(days=9)
    assert trim(small, "batches", "at", DAY, dry_run=False) == 0
    assert trim(small, "batches", "at", late, dry_run=True) == 39
    assert trim(small, "batches", "at", late, dry_run=False) == 2 * 39
    assert journal.load().positions["foreign"]["g1"] == known.positions["foreign"]["g1"]
    assert journal.load().last == last
    assert trim(small, "batches", "at", late, dry_run=False) == 0
