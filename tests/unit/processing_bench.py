"""The output of a pipeline of one stream, written by hand into a real lake, and its processing; no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake

from clickjoin.config import Pipeline, load
from clickjoin.dispatcher.journal import Journal
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake_setup import initialise
from clickjoin.model import failpoint
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.ids import moment
from clickjoin.model.txn import Txn
from clickjoin.processing.processing import Processing, Row

SECOND, MINUTE, HOUR, DAY = 10**6, 60 * 10**6, 3600 * 10**6, 86400 * 10**6
NOON = 20_000 * DAY + 12 * HOUR
Event = tuple[str, str | None, int]  # id, key, time


class Output:
    """A lake whose output grows on request."""

    def __init__(
        self, folder: Path, process: dict[str, Any] | None = None, name: str = "shop", **sections: Any
    ) -> None:
        self.name, self.file, self.now = name, folder / f"{name}.yaml", NOON
        source = {"kind": "files", "path": "logs/*.jsonl"}
        self.raw: dict[str, Any] = {
            "pipeline": name, "engine": "arrow", "lake": "lake",
            "stream": {"source": source, "event_id": "id", "event_time": "at"},
            "output": {"columns": {"item": {"from": "stream.item", "type": "STRING"}}, "records": "record"},
            "process": {"key": "item", "processor": "clickjoin.processors:TumblingCounts", "args": {"window": "1m"}}
            | (process or {}),
        } | sections  # fmt: skip
        self.pipeline = self.write()
        self.delta = ArrowTables(self.pipeline.root)
        initialise(self.pipeline, self.delta)
        self.batch = 0

    def write(self, **process: Any) -> Pipeline:
        """Write the pipeline's file, with other fields of section `process`."""
        self.raw["process"] |= process
        self.file.write_text(yaml.safe_dump(self.raw))
        self.pipeline = load(self.file)
        return self.pipeline

    def reopen(self) -> None:
        """Have the join begin again, from what its journal holds."""
        self.delta = ArrowTables(self.pipeline.root)
        self.batch = Journal(self.delta, self.name, "main", "join").settled()

    def table(self, name: str = "deduplicated") -> DeltaTable:
        """A table as any other program sees it."""
        return DeltaTable(f"{self.pipeline.root}/{name}")

    def publish(self, events: Sequence[Event], watermark: int | None) -> None:
        """A batch of the join: rows, and how far it says that the output has come."""
        self.batch += 1
        plan = BatchPlan(self.name, "main", "join", self.batch, self.now, snapshot=True)
        journal = Journal(self.delta, self.name, "main", "join")
        journal.plan(plan, moment(self.now))
        self.add(events)
        at = None if watermark is None else moment(watermark)
        row = {
            "replica": "main",
            "sequence": "join",
            "batch": self.batch,
            "watermark": at,
            "settled_at": moment(self.now),
        }
        self.delta.append("metrics", [row], Txn(f"{self.name}/main/join", self.batch))
        journal.settle(self.batch, {}, moment(self.now))

    def add(self, events: Sequence[Event]) -> None:
        """Rows of the output, whoever writes them."""
        if events:
            write_deltalake(self.table(), self.rows_of(events), mode="append")

    def write_table(self, name: str, rows: pa.Table) -> None:
        """Rows of a table, as any other program writes them."""
        write_deltalake(self.table(name), rows, mode="append")

    def rows_of(self, events: Sequence[Event]) -> pa.Table:
        """Events as rows of the output."""
        schema = pa.schema(self.table().schema().to_arrow())
        rows = [
            {
                "event_id": name, "event_time": moment(time), "item": key, "bucket": f"{moment(time):%Y-%m-%dT%H00Z}",
                "event_date": moment(time).date(), "record": f'{{"id":"{name}"}}',
            }
            for name, key, time in events
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, schema=schema)

    def processing(self) -> Processing:
        """Another process that processes it."""
        return Processing(self.pipeline, clock=lambda: self.now / 10**6)

    def drain(self) -> list[Row]:
        """Process all there is."""
        rows = list[Row]()
        self.processing().drain(rows.append)
        return rows

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Rows of a table of the processing, in order."""
        found = self.table(f"process/{name}").to_pyarrow_table().to_pylist()
        return sorted(found, key=lambda row: str(row.get("id") or row.get("event_id") or row["batch"]))

    def signals(self) -> list[tuple[Any, ...]]:
        """What was reported: key, kind, window, count."""
        return [(row["key"], row["kind"], micros(row["window_start"]), row["count"]) for row in self.rows("signals")]


def micros(at: datetime) -> int:
    return round((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 10**6)


class Killed(BaseException):
    """The process ends here."""


def killed_at(point: str, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> bool:
    """Do some work in a process that ends at a point; whether it came there."""

    def reach(name: str) -> None:
        if name == point:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(failpoint, "reach", reach)
        try:
            work()
        except Killed:
            return True
    return False


def paused_at(
    point: str, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], meanwhile: Callable[[], object]
) -> None:
    """Do some work in a process that is paused at a point, while others go on."""
    paused = False

    def reach(name: str) -> None:
        nonlocal paused
        if name == point and not paused:
            paused = True
            meanwhile()

    with monkeypatch.context() as patch:
        patch.setattr(failpoint, "reach", reach)
        work()


def expected(events: Sequence[Event], watermark: int) -> list[tuple[Any, ...]]:
    """Counts of each key and minute that is over, by a counter of our own."""
    counts = Counter((key, time // MINUTE * MINUTE) for _, key, time in events if key is not None)
    return sorted(
        ((key, "count", start, count) for (key, start), count in counts.items() if start + MINUTE <= watermark),
        key=str,
    )


def through_kills(
    out: Output, batches: Sequence[Any], lateness: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Event], int, int, int]:
    """Batches as (keys and seconds after noon, seconds that the watermark moves, where a process is killed or "").

    Returns events that are to count, how many came on time and how many behind the watermark, and where that is.
    """
    mark, passed, counts, on_time, late = NOON, NOON, list[Event](), 0, 0
    for nth, (events, step, point) in enumerate(batches):
        new = [(f"{nth}-{at}", key, NOON + second * SECOND) for at, (key, second) in enumerate(events)]
        counts += [event for event in new if event[2] >= passed - lateness]
        on_time += sum(event[2] >= passed for event in new)
        late += sum(event[2] < passed for event in new)
        mark += step * SECOND
        out.publish(new, mark)
        if not (point and killed_at(point, monkeypatch, out.processing().once)):
            out.drain()
        out.drain()
        # Time alone makes a batch only where a window ends by it, or can be corrected no more; the first one begins.
        ends = {(time // MINUTE + 1) * MINUTE for _, _, time in counts}
        if not nth or new or any(passed < end + more <= mark for end in ends for more in (0, lateness)):
            passed = mark
    return counts, on_time, late, mark


def by_text(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=str)


FIRST = [("a1", "shoes", NOON), ("a2", "shoes", NOON + SECOND), ("a3", "hats", NOON + 5 * SECOND)]
SECOND_BATCH = [("b1", "shoes", NOON + 40 * SECOND), ("b2", "hats", NOON + 70 * SECOND)]


def two_batches(folder: Path, **process_: Any) -> Output:
    out = Output(folder, process_)
    out.publish(FIRST, NOON)
    out.drain()
    out.publish(SECOND_BATCH, NOON + MINUTE)
    return out
