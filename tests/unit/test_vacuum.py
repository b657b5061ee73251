"""Removing files by the lake's own times: what somebody may still need stays, whatever any process's clock says."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow import ArrowTables
from clickjoin.kernel.data_file import DataFile, Target, write
from clickjoin.lake.vacuum import Needed, clean_log, is_whole, vacuum
from clickjoin.model.txn import Txn
from clickjoin.schemas import FOREIGN
from clickjoin.schemas.arrow import arrow_schema

HOUR, DAY = 3600.0, 86400.0


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    tables = ArrowTables(str(tmp_path))
    tables.create(FOREIGN)
    return tables


def files(delta: ArrowTables, bucket: str) -> list[DataFile]:
    """Files beside the table, as workers write them."""
    target = Target(delta.path("foreign"), arrow_schema(FOREIGN), FOREIGN.partitions, FOREIGN.statistics)
    row = dict.fromkeys(target.schema.names) | {"event_id": bucket, "bucket": bucket, "shard": 0, "batch": 1}
    return write(target, pa.Table.from_pylist([row], schema=target.schema))


def land(delta: ArrowTables, bucket: str, number: int) -> str:
    added = files(delta, bucket)
    assert delta.add("foreign", added, Txn("land", number))
    return added[0].path


def age(delta: ArrowTables, seconds: float, *names: str) -> None:
    """Make files (all that there are, where none is named) as old as if so much time had passed since."""
    root = Path(delta.path("foreign"))
    for path in [root / name for name in names] or [path for path in root.rglob("*") if path.is_file()]:
        found = path.stat()
        os.utime(path, (found.st_atime - seconds, found.st_mtime - seconds))


def there(delta: ArrowTables, *names: str) -> list[bool]:
    return [Path(delta.path("foreign"), name).exists() for name in names]


def day_old(**more: object) -> Needed:
    return Needed(**{"since": time.time() - DAY} | more)  # type: ignore[arg-type]


def test_what_was_removed_stays_for_a_day_and_goes_then(delta: ArrowTables) -> None:
    old, new = land(delta, "a", 1), land(delta, "b", 2)
    age(delta, 9 * DAY)  # files are old long before a rewriting, or GC, removes them
    delta.drop_buckets("foreign", "b")
    assert vacuum(delta, "foreign", day_old()) == []
    age(delta, DAY + HOUR)
    assert vacuum(delta, "foreign", day_old(), dry_run=True) == [old]
    assert there(delta, old, new) == [True, True]
    assert vacuum(delta, "foreign", day_old()) == [old]
    assert there(delta, old, new) == [False, True]
    assert len(delta.read("foreign")) == 1


@pytest.mark.parametrize("off", [-3 * DAY, 3 * DAY])
def test_the_time_that_a_remover_wrote_counts_for_nothing(delta: ArrowTables, off: float) -> None:
    """Its clock was three days behind, or ahead: a file that it removed stays for a day all the same, and goes then."""
    old, _ = land(delta, "a", 1), land(delta, "b", 2)
    age(delta, 9 * DAY)
    delta.drop_buckets("foreign", "b")
    log = Path(delta.path("foreign"), "_delta_log", f"{delta.version('foreign'):020}.json")
    text, now = log.read_text(), time.time()
    stamp = text.partition('"deletionTimestamp":')[2][:13]
    log.write_text(text.replace(stamp, str(int((now + off) * 1000))))
    assert vacuum(ArrowTables(str(log.parents[2])), "foreign", day_old()) == []
    age(delta, DAY + HOUR)
    assert vacuum(ArrowTables(str(log.parents[2])), "foreign", day_old()) == [old]


def test_what_nobody_committed(delta: ArrowTables) -> None:
    land(delta, "a", 1)
    fresh, paused, dead = (files(delta, "b")[0].path for _ in range(3))
    age(delta, 3 * DAY, paused)
    age(delta, 4 * DAY, dead)
    plan = time.time() - 3 * DAY - HOUR  # a batch is under way since then
    assert vacuum(delta, "foreign", day_old(written=plan)) == [dead]
    assert there(delta, fresh, paused, dead) == [True, True, False]
    assert vacuum(delta, "foreign", day_old()) == [paused]
    assert there(delta, fresh) == [True]


def test_a_version_that_a_plan_names_stays_readable(delta: ArrowTables) -> None:
    old, _ = land(delta, "a", 1), land(delta, "b", 2)
    named = delta.version("foreign")
    delta.drop_buckets("foreign", "b")
    delta.open("foreign").create_checkpoint()
    land(delta, "c", 3)
    age(delta, 9 * DAY)
    land(delta, "d", 4)
    needed = day_old(versions=(named,))
    assert vacuum(delta, "foreign", needed) == []
    clean_log(delta, "foreign", time.time(), needed)
    assert is_whole(delta, "foreign", named)
    assert DeltaTable(delta.path("foreign"), version=named).to_pyarrow_table().num_rows == 2
    assert vacuum(delta, "foreign", day_old()) == [old]
    assert not is_whole(delta, "foreign", named)
    assert is_whole(delta, "foreign", delta.version("foreign"))


def test_what_is_not_the_tables_data_is_left_alone(delta: ArrowTables) -> None:
    root = Path(delta.path("foreign"))
    others = ["notes.txt", "_mine/x.parquet", "bucket=a/.x.parquet.crc", "_delta_log/x.parquet"]
    for name in others:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")
    land(delta, "a", 1)
    age(delta, 9 * DAY)
    assert vacuum(delta, "foreign", day_old()) == []
    assert there(delta, *others) == [True] * 4


def versions(delta: ArrowTables) -> list[int]:
    log = Path(delta.path("foreign"), "_delta_log")
    return sorted(int(path.stem) for path in log.glob("*.json") if path.stem.isdigit())


def test_the_log_of_the_last_days_can_be_read(delta: ArrowTables) -> None:
    for number in range(4):
        land(delta, "a", number)
    delta.open("foreign").create_checkpoint()  # version 4
    for number in range(4, 7):
        land(delta, "a", number)
    killed = Path(delta.path("foreign"), "_delta_log", f".{2:020}.json.{'0f' * 16}")  # before its entry was linked
    killed.touch()
    age(delta, 4 * DAY)
    land(delta, "a", 7)  # version 8
    assert clean_log(delta, "foreign", time.time(), day_old()) > 0
    # Version 7 was the newest three days ago; it is read from the checkpoint before it.
    assert versions(delta) == [4, 5, 6, 7, 8]
    assert not killed.exists()
    assert [is_whole(delta, "foreign", version) for version in (3, 4, 7, 8)] == [False, True, True, True]
    age(delta, 4 * DAY)
    assert clean_log(delta, "foreign", time.time(), day_old()) > 0
    assert versions(delta) == [8]
    assert len(ArrowTables(str(Path(delta.path("foreign")).parent)).read("foreign")) == 8


def test_a_log_with_one_young_file_in_the_middle_keeps_no_gap(delta: ArrowTables) -> None:
    """Written by a host whose clock was ahead."""
    for number in range(6):
        land(delta, "a", number)
        delta.open("foreign").create_checkpoint()
    age(delta, 9 * DAY)
    os.utime(Path(delta.path("foreign"), "_delta_log", f"{3:020}.json"))
    clean_log(delta, "foreign", time.time(), day_old())
    assert versions(delta) == [2, 3, 4, 5, 6]  # 2 was the newest before the first young one
    assert all(is_whole(delta, "foreign", version) for version in versions(delta))


def test_no_other_process_cleans_a_log(delta: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """delta-rs and Spark both clean up with each checkpoint that they write, by their own clocks."""
    land(delta, "a", 0)
    age(delta, 30 * DAY)
    for number in range(1, 60):  # a checkpoint comes every 25 versions
        land(delta, "a", number)
    assert list(Path(delta.path("foreign"), "_delta_log").glob("*.checkpoint.parquet"))
    assert versions(delta)[0] == 0
