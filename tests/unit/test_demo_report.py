"""The demo's sums must fail when anything is off, and its latencies must come from the table's own log."""

from __future__ import annotations

import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake
from rich.console import Console

from bootstrap import ROOT
from clickjoin.config import load
from demo.feeder import Entry
from demo.lake import Lake
from demo.latency import Readable, spread
from demo.report import a_row, latencies, sums, tally, times, written_by
from demo.running import write_pipeline

SECOND = 1_000_000
ENTRIES = (
    Entry("impressions", "i1", "good", 1 * SECOND),
    Entry("clicks", "c0", "good", 1 * SECOND),
    Entry("clicks", "c1", "good", 2 * SECOND),
    Entry("clicks", "c2", "good", 3 * SECOND),
    Entry("clicks", "c2", "repeat", 4 * SECOND),
    Entry("clicks", "c9", "orphan", 4 * SECOND),
    Entry("clicks", "", "no-id", 4 * SECOND),
    Entry("impressions", "i2", "held", 6 * SECOND),
)
Rows = list[dict[str, Any]]
JOINED = [{"event_id": f"c{n}", "primary_id": "i2" if n == 2 else "i1"} for n in range(3)]


def write(lake: Lake, name: str, rows: Rows, **schema: pa.DataType) -> None:
    """Append rows to a table, in one commit."""
    fields = {"event_id": pa.string(), **({"primary_id": pa.string()} if name == "joined" else {})}
    table = pa.Table.from_pylist(rows, schema=pa.schema(list((schema or fields).items())))
    write_deltalake(str(lake.folder / name), table, mode="append")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Tables as a pipeline without fault would leave them."""
    lake = Lake(tmp_path / "lake")
    write(lake, "foreign", [{"event_id": event_id} for event_id in ("c0", "c1", "c2", "c2", "c9")])
    write(lake, "primary", [{"event_id": event_id} for event_id in ("i1", "i2")])
    write(lake, "joined", JOINED[:2])
    write(lake, "pending", [{"event_id": event_id} for event_id in ("c2", "c9", "c9")])
    write(lake, "quarantine", [{"stream": "foreign", "part": None}], stream=pa.string(), part=pa.int32())
    return lake


def finish(lake: Lake) -> None:
    """The last two clicks find their places."""
    write(lake, "joined", JOINED[2:])
    write(lake, "unjoinable", [{"event_id": "c9"}])


def test_sums_agree(lake: Lake) -> None:
    assert lake.waiting() == {"c2", "c9"}
    finish(lake)
    found = tally(lake, ENTRIES)
    assert found.faults == ()
    clicks = found.streams["clicks"]
    assert (clicks.lines, clicks.accepted, clicks.duplicates, clicks.quarantined) == (6, 4, 1, 1)
    assert found.outcomes == {"joined": 3, "unjoinable": 1, "expired": 0, "filtered": 0}
    assert found.pending == 0


def test_a_row_is_shown(lake: Lake, tmp_path: Path) -> None:
    assert a_row(lake) == ["a row of lake/joined:", "  event_id    c0", "  primary_id  i1"]
    assert a_row(Lake(tmp_path / "none")) == []


@pytest.mark.parametrize(
    ("table", "rows", "fault"),
    [
        ("joined", JOINED[:1], "joined: 4 rows of 3 clicks"),
        ("filtered", JOINED[:1], "4 accepted, and 5 joined"),
        ("foreign", [{"event_id": "c7"}], "accepted and never fed, such as c7"),
        ("primary", [{"event_id": "i1"}], "impressions: 2 lines in, 3 accepted"),
    ],
)  # fmt: skip
def test_sums_that_do_not_agree(lake: Lake, table: str, rows: Rows, fault: str) -> None:
    finish(lake)
    write(lake, table, [{"event_id": row["event_id"]} for row in rows] if table != "joined" else rows)
    assert any(fault in text for text in tally(lake, ENTRIES).faults)


def test_what_is_still_pending_is_a_fault(lake: Lake) -> None:
    assert tally(lake, ENTRIES).faults == ("2 clicks that are still pending, such as c2",)


def commit_at(lake: Lake, version: int, seconds: float) -> None:
    """Say when a commit of `joined` was made."""
    os.utime(lake.folder / f"joined/_delta_log/{version:020}.json", (seconds, seconds))


def test_latency_is_from_written_to_commit(lake: Lake) -> None:
    readable = Readable(lake.folder / "joined")
    commit_at(lake, 0, 4.5)
    readable.update()
    assert readable.moments == {"c0": 4_500_000, "c1": 4_500_000}
    finish(lake)
    DeltaTable(str(lake.folder / "joined")).optimize.compact()  # moves rows, and makes none readable
    commit_at(lake, 1, 8)
    readable.update()
    assert readable.moments == {"c0": 4_500_000, "c1": 4_500_000, "c2": 8_000_000}
    assert readable.rows == 3
    found = latencies(lake, ENTRIES, readable, warm=2)
    assert {name: (of.count, of.p50, of.max) for name, of in found.items() if of} == {
        "all clicks": (2, 5.0, 5.0), "impression written first": (1, 2.5, 2.5), "impression held back": (1, 5.0, 5.0),
    }  # fmt: skip


def test_spread_takes_values_that_were_seen() -> None:
    found = spread(n * SECOND for n in range(1, 101))
    assert found
    assert (found.p50, found.p90, found.p99, found.max) == (51, 91, 100, 100)
    assert spread([]) is None


def test_tables_are_printed(lake: Lake) -> None:
    finish(lake)
    readable = Readable(lake.folder / "joined")
    readable.update()
    console = Console(record=True, width=120, file=StringIO())
    console.print(sums(tally(lake, ENTRIES)), times(latencies(lake, ENTRIES, readable, 0)))
    text = console.export_text()
    assert all(word in text for word in ("input lines", "quarantined", "unjoinable", "p99", "all clicks"))


def test_tables_that_are_not_there_are_empty(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "none")
    assert (lake.rows("joined"), lake.ids("joined"), lake.waiting()) == (0, set(), set())


def test_pipeline_of_the_demo_is_that_of_the_repository(tmp_path: Path) -> None:
    file = tmp_path / "pipelines/other.yaml"
    write_pipeline(file, tmp_path / "lake", tmp_path / "a/*.jsonl", tmp_path / "b/*.jsonl", batch={"lease": "30s"})
    pipeline = load(file)
    assert (pipeline.pipeline, pipeline.root) == ("other", f"{tmp_path}/lake/other")
    assert (pipeline.primary.source.path, pipeline.batch.lease) == (f"{tmp_path}/a/*.jsonl", 30)
    original = yaml.safe_load((ROOT / "dags/pipelines/zozo.yaml").read_text())
    assert yaml.safe_load(file.read_text())["retry"] == original["retry"]


def test_whose_commits_the_tables_hold(tmp_path: Path) -> None:
    entries = {
        "registry": [("Apache-Spark/4.2.0 Delta-Lake/4.4.0", "CREATE TABLE"), ("Apache-Spark/4.2.0", "MERGE")],
        "joined": [("delta-rs:py-1.6.6", "WRITE")],
    }
    for table, commits in entries.items():
        log = tmp_path / table / "_delta_log"
        log.mkdir(parents=True)
        for version, (engine, operation) in enumerate(commits):
            info = {"commitInfo": {"engineInfo": engine, "operation": operation}}
            (log / f"{version:020}.json").write_text(json.dumps({"metaData": {}}) + "\n" + json.dumps(info))
    assert written_by(Lake(tmp_path).commits()) == (
        "commits in the logs of its 2 tables: 2 by Spark and 1 by delta-rs; of the registry: 1 CREATE TABLE, 1 MERGE"
    )
