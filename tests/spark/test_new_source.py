"""A source that nobody knew of when the engine was written: rows of an SQLite table, joined exactly once.

It is written against the port alone, and no other part of the product knows it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clickjoin.engine import Engine
from clickjoin.kernel.read_lines import SCHEMA
from clickjoin.model import failpoint
from clickjoin.model.ids import RecordSpec, embedded_micros
from clickjoin.model.split import Budget, SourceOffset, SourcePlan, Split
from clickjoin.sources.port import Source
from clickjoin.verification.verify import Verifier, Wanted
from tests.sampled import crossed, some
from tests.spark.bench import NOON, Bench, click, counts, query
from tests.spark.count import agrees
from tests.spark.hand import Hand, found, stopped

Q, LATE = query("q"), query("late", 1)
_ROW = 100  # bytes, about
_SEEN = re.compile(r'"held":{.*?}},(?="newest")')


class TableSource(Source):
    """Rows (record, in the order of their rowids, which may have gaps) of one table of an SQLite database."""

    def __init__(self, database: Path, table: str) -> None:
        self._database, self._table = database, table

    def plan(self, offsets: Mapping[str, SourceOffset], budget: Budget) -> SourcePlan:
        """The rows after the last that was planned, up to the budget."""
        after = offsets[self._table].payload["rowid"] if self._table in offsets else 0
        unread = [rowid for rowid, _ in self._rows(after, 1 << 62)]
        if not unread:
            return SourcePlan()
        last, left = unread[: budget.max_events][-1], len(unread[budget.max_events :])
        rows, path = {"after": after, "last": last}, f"{self._database}:{self._table}"
        split = Split(self._table, rows, path, len(unread) - left, _ROW * (len(unread) - left))
        return SourcePlan((split,), (SourceOffset(self._table, {"rowid": last}),), _ROW * left, left)

    def read_here(self, splits: Sequence[Split], spec: RecordSpec) -> pa.Table:
        """Good rows and bad ones."""
        rows = [row for split in splits for row in self._records(split, spec)]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def _rows(self, after: int, last: int) -> list[tuple[int, str]]:
        with closing(sqlite3.connect(self._database)) as connection:
            wanted = f"SELECT rowid, record FROM {self._table} WHERE rowid > ? AND rowid <= ? ORDER BY rowid"
            return connection.execute(wanted, (after, last)).fetchall()

    def _records(self, split: Split, spec: RecordSpec) -> Iterator[dict[str, Any]]:
        for rowid, text in self._rows(split.payload["after"], split.payload["last"]):
            place = {"path": split.path, "source_partition": split.partition, "offset": rowid, "length": 1}
            try:
                record = json.loads(text)
            except ValueError as error:
                yield place | {"reason": "broken-json", "detail": str(error), "raw": text.encode(), "part": 0}
                continue
            names = {"event_id": record[spec.event_id[0]]}
            names |= {"primary_id": record[spec.primary_id[0]]} if spec.primary_id else {}
            times = {name.replace("_id", "_time"): embedded_micros(value) for name, value in names.items()}
            yield place | names | times | {"payload": text}


class Tables:
    """A pipeline whose streams are tables of a database."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.database = bench, bench.folder / "events.db"
        self._write("CREATE TABLE primary_rows (record TEXT)", "CREATE TABLE foreign_rows (record TEXT)")

    def _write(self, *statements: Any) -> None:
        with closing(sqlite3.connect(self.database)) as connection:
            for statement in statements:
                connection.execute(*(statement if isinstance(statement, tuple) else (statement,)))
            connection.commit()

    def add(self, stream: str, *records: Any) -> None:
        """Insert records; what is no object is inserted as it is. Every rowid is three after the one before."""
        for record in records:
            text = record if isinstance(record, str) else json.dumps(record)
            insert = (
                f"INSERT INTO {stream}_rows (rowid, record) SELECT COALESCE(MAX(rowid), 0) + 3, ? FROM {stream}_rows"
            )
            self._write((insert, (text,)))

    def engine(self, replica: str = "main") -> Engine:
        """A running copy, as new as after a restart."""
        sources = {stream: TableSource(self.database, f"{stream}_rows") for stream in ("primary", "foreign")}
        return Engine(self.bench.spark, self.bench.pipeline, replica, clock=self.bench.clock, sources=sources)

    def verify(self, **wanted: Any) -> Any:
        return Verifier(self.engine(), lambda _: None, patience=0).verify(Wanted(**wanted))

    def write_all(self) -> None:
        """Two batches: clicks that join, one repeated, one whose query comes late, and records that are broken."""
        self.add("primary", Q, "{broken", Q)
        self.add("foreign", *(click(f"c{n}", 2 + n, Q) for n in range(4)), click("c1", 3, Q), click("w", 9, LATE), "[")


def drain(tables: Tables) -> None:
    """All that is there, and then the late query and the retry that it is waited for with."""
    engine = tables.engine()
    while engine.join_once():
        pass
    tables.add("primary", LATE)
    assert engine.join_once()
    tables.bench.clock.now += 10
    assert counts(engine.retry_once().metrics) == {"events_in": 1, "joined": 1}  # type: ignore[union-attr]


def everything(tables: Tables) -> dict[str, str]:
    """All rows of all tables, whatever folder they are in; but what a settled batch has seen only its process knows."""
    rows = tables.bench.all_tables()
    text = {name: repr(found).replace(str(tables.bench.folder), ".") for name, found in rows.items()}
    return text | {"journal": _SEEN.sub("", text["journal"])}


@pytest.fixture(scope="module")
def whole(make: Any) -> dict[str, str]:
    """All tables after a run that nothing disturbs."""
    tables = Tables(make(batch={"max_events": 4}))
    tables.write_all()
    drain(tables)
    assert tables.bench.places() == {"joined": ["c0", "c1", "c2", "c3", "w"]}
    assert tables.bench.rows("quarantine", "stream", "offset", "reason", "raw") == [
        ("foreign", 21, "broken-json", b"["),
        ("primary", 6, "broken-json", b"{broken"),
    ]
    assert set(tables.bench.rows("foreign", "source_partition", "offset")) == {
        ("foreign_rows", 3 * n) for n in range(1, 7)
    }
    # Nothing had landed before the first; then the query of noon had, and no other.
    noon = datetime.fromtimestamp(NOON - tables.bench.pipeline.close.max_out_of_orderness, UTC)
    marks = [("join", 1, None), ("join", 2, noon), ("join", 3, noon), ("retry", 1, None)]
    assert tables.bench.rows("metrics", "sequence", "batch", "watermark") == marks
    assert agrees(tables.bench)
    seen = everything(tables)
    assert found(tables.verify()) == {}
    return seen


@pytest.mark.parametrize(("point", "local"), crossed(some(failpoint.POINTS, 4), ["0B", "4MB"]))
def test_joined_once_through_crashes(
    make: Any, whole: dict[str, str], monkeypatch: pytest.MonkeyPatch, point: str, local: str
) -> None:
    """Both batches are cut short here, read by this process or for Spark: all tables are as if nothing had happened."""
    tables = Tables(make(batch={"max_events": 4, "driver_bytes": local}))
    tables.write_all()
    for _ in range(2):
        stopped(monkeypatch, point, lambda: tables.engine().join_once())
        if point != "settled":
            assert tables.engine().join_once()
    drain(tables)
    assert everything(tables) == whole
    assert found(tables.verify()) == {}


def test_what_is_in_no_table_is_read_again(make: Any) -> None:
    """The default check reads splits again, finds what is missing, and a repair lands it."""
    tables = Tables(make())
    tables.write_all()
    drain(tables)
    hand = Hand(tables.bench)
    rows = hand.rows("foreign", "c2")
    hand.delete("foreign", "c2")
    assert found(tables.verify()) == {"unknown_output": 1, "unread": 1}
    tables.verify(repair=True)
    assert len(hand.rows("foreign", "c2")) == 1
    hand.add("foreign", rows[0])
    assert found(tables.verify()) == {"overread": 1}


def test_two_replicas_join_each_event_once(make: Any) -> None:
    """Each reads all rows, and what one has joined is a repeat for the other."""
    tables = Tables(make())
    tables.write_all()
    settled = [counts(tables.engine(name).join_once().metrics) for name in ("main", "east")]  # type: ignore[union-attr]
    assert [one.get("joined", 0) for one in settled] == [4, 0]
    assert agrees(tables.bench)
