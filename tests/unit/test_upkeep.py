"""Dropping and trimming through the log: what must stay stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from clickjoin.dispatcher.journal import Journal
from clickjoin.engines.arrow import ArrowTables
from clickjoin.engines.tables_port import UnderWay
from clickjoin.gc import compaction
from clickjoin.gc.journal_retention import KEPT_BATCHES, trim
from clickjoin.lake import committer, maintenance
from clickjoin.lake.maintenance import LARGE, Heap, Size, heaps, sizes
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.ids import MICROS
from clickjoin.model.split import SourceOffset
from clickjoin.model.txn import Txn
from clickjoin.schemas import BATCHES, FOREIGN

DAY = datetime(2026, 3, 1, tzinfo=UTC)
OLD_BATCHES = "replica = 'main' AND sequence = 'join' AND batch < 2"


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    tables = ArrowTables(str(tmp_path))
    tables.create(BATCHES)
    tables.create(FOREIGN)
    return tables


def land(delta: ArrowTables, bucket: str, batch: int, rows: int = 2) -> None:
    table = delta.open("foreign")
    schema = pa.schema(table.schema())
    data = [{"event_id": f"{bucket}{batch}{n}", "bucket": bucket, "batch": batch, "shard": 0} for n in range(rows)]
    whole = [{name: row.get(name) for name in schema.names} for row in data]
    write_deltalake(delta.path("foreign"), pa.Table.from_pylist(whole, schema=schema), mode="append")


def buckets(delta: ArrowTables) -> dict[str, int]:
    return {bucket: size.rows for bucket, size in sorted(sizes(delta, "foreign").items())}


def test_what_a_delete_keeps_is_on_disk(delta: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """delta-rs itself flushes neither the file that it writes nor its commit."""
    flushed: list[str] = []
    monkeypatch.setattr(committer, "flush_data", lambda folder, name: flushed.append(name))
    monkeypatch.setattr(committer, "_flush", lambda uri, version, *_: flushed.append(str(version)))
    row = {"replica": "main", "sequence": "join", "state": "planned", "at": DAY, "snapshot": False, "plan": "{}"}
    delta.append("journal", [row | {"batch": number} for number in (1, 2)])
    flushed.clear()
    assert delta.delete("journal", OLD_BATCHES) == 1
    kept = delta.files("journal")["path"].to_pylist()
    assert flushed == [*kept, str(delta.version("journal"))]
    land(delta, "a", 1)
    flushed.clear()
    delta.drop_buckets("foreign", "b")
    assert flushed == [str(delta.version("foreign"))]
    assert delta.delete("journal", OLD_BATCHES) == 0


def test_what_a_delete_keeps_can_be_read(delta: ArrowTables) -> None:
    """delta-rs writes its texts as string views, which Arrow does not compare with texts."""
    row = {"replica": "main", "sequence": "join", "at": DAY, "snapshot": False, "plan": "{}"}
    states = ("planned", "settled")
    delta.append("journal", [row | {"batch": number, "state": state} for number in (1, 2, 3) for state in states])
    assert delta.delete("journal", OLD_BATCHES) == 2
    wanted = [("state", "=", "settled"), ("replica", "=", "main"), ("sequence", "=", "join"), ("batch", ">=", 3)]
    assert delta.read("journal", wanted, ["batch"]).to_pylist() == [{"batch": 3}]
    assert delta.read("journal", wanted).num_rows == 1
    assert delta.read("journal", [("state", "in", ["settled"]), ("replica", "in", ("main",))]).num_rows == 2
    either = [[("state", "=", "settled"), ("batch", "=", number)] for number in (1, 2)]
    assert delta.read("journal", either, ["batch"]).to_pylist() == [{"batch": 2}]
    assert delta.read("journal", [("state", "=", "none")]).num_rows == 0


def test_sizes_of_an_empty_table(delta: ArrowTables) -> None:
    assert sizes(delta, "foreign") == {}
    assert delta.drop_buckets("foreign", "z") == Size()


def test_drop_whole_buckets(delta: ArrowTables) -> None:
    for number, bucket in enumerate("abc"):
        land(delta, bucket, number + 1)
    gone = delta.drop_buckets("foreign", "c")
    assert (gone.files, gone.rows, gone.bytes > 0) == (2, 4, True)
    assert buckets(delta) == {"c": 2}
    version = delta.version("foreign")
    assert delta.drop_buckets("foreign", "c") == Size()
    assert delta.version("foreign") == version


def test_rows_of_batches_under_way_stay(delta: ArrowTables) -> None:
    for number, bucket in enumerate("abcb"):
        land(delta, bucket, number + 1)
    assert delta.drop_buckets("foreign", "d", lambda: UnderWay([4], {})).rows == 2
    assert buckets(delta) == {"b": 4, "c": 2}
    assert delta.drop_buckets("foreign", "d", lambda: UnderWay([9], {})).rows == 6


def test_what_lands_while_it_looks_stays(delta: ArrowTables) -> None:
    """A batch that is planned and lands after the table's version was fixed is not among those asked for."""
    land(delta, "a", 1)
    asked: list[int] = []

    def under_way() -> UnderWay:
        asked.append(1)
        if len(asked) == 1:
            land(ArrowTables(str(Path(delta.path("foreign")).parent)), "a", 2)
            return UnderWay([], {})
        return UnderWay([2], {})

    assert delta.drop_buckets("foreign", "b", under_way).rows == 0
    assert buckets(delta) == {"a": 4}


def test_heaps(delta: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    assert heaps(delta, "foreign") == []
    for batch, bucket in enumerate("aaabbc", 1):
        land(delta, bucket, batch, 2 if batch < 6 else 2000)
    found = {heap.place: heap for heap in heaps(delta, "foreign")}
    assert {bucket: heap.files for bucket, heap in found.items()} == {"a": 3, "b": 2, "c": 1}
    assert all(heap.largest <= heap.bytes <= heap.largest * heap.files < LARGE for heap in found.values())
    monkeypatch.setattr(maintenance, "LARGE", found["c"].bytes)
    assert sorted(heap.place or "" for heap in heaps(delta, "foreign")) == ["a", "b"]
    assert heaps(delta, "journal") == []
    delta.append("journal", [{"replica": "r", "sequence": "join", "batch": 1, "at": DAY}], Txn("t", 1))
    assert [(heap.place, heap.files) for heap in heaps(delta, "journal")] == [(None, 1)]


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
    monkeypatch.setattr(compaction, "first_open", lambda *_: "2026-01-01-10")
    found = compaction._due(None, [heap], now, compaction.FEWEST_IN_OPEN)  # type: ignore[arg-type]
    assert list(found) == ([heap.place] if due else [])


def test_journal_keeps_what_positions_are_rebuilt_from(delta: ArrowTables) -> None:
    journal = Journal(delta, "p", "main", "join")
    last = KEPT_BATCHES + 40
    rows = []
    for number in range(1, last + 1):
        at = DAY + timedelta(minutes=number)
        place = SourceOffset("g1" if number > 5 else "g0", {"read": number})
        plan = BatchPlan(
            "p", "main", "join", number, int(at.timestamp() * MICROS),
            offsets={"foreign": (place,)}, snapshot=(number - 1) % 100 == 0,
        )  # fmt: skip
        key = {"replica": "main", "sequence": "join", "batch": number, "at": at}
        rows.append({**key, "state": "planned", "snapshot": plan.snapshot, "plan": plan.to_json()})
        rows.append({**key, "state": "settled", "snapshot": False, "plan": '{"lost": {}}'})
    assert delta.append("journal", rows, Txn("p/main/join/planned", last))
    assert delta.commit_txn_only("journal", Txn("p/main/join/settled", last))
    known = journal.load()
    late = DAY + timedelta(days=9)
    assert trim(delta, "journal", "at", DAY, dry_run=False) == 0
    assert trim(delta, "journal", "at", late, dry_run=True) == 39
    assert trim(delta, "journal", "at", late, dry_run=False) == 2 * 39
    assert journal.load().offsets["foreign"]["g1"] == known.offsets["foreign"]["g1"]
    assert journal.load().last == last
    assert trim(delta, "journal", "at", late, dry_run=False) == 0
