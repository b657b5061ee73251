"""Removing files by the lake's own times: what somebody may still need stays, whatever any process's clock says."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from clickjoin.lake import SmallTables, Txn
from clickjoin.lake.types import arrow_schema
from clickjoin.lake.upkeep import drop_buckets
from clickjoin.lake.vacuum import Needed, clean_log, is_whole, vacuum
from clickjoin.lake.written import Target, Written, write
from clickjoin.tables import FOREIGN

HOUR, DAY = 3600.0, 86400.0


@pytest.fixture
def small(tmp_path: Path) -> SmallTables:
    tables = SmallTables(str(tmp_path))
    tables.create(FOREIGN)
    return tables


def files(small: SmallTables, bucket: str) -> list[Written]:
    """Files beside the table, as workers write them."""
    target = Target(small.path("foreign"), arrow_schema(FOREIGN), FOREIGN.partitions, FOREIGN.statistics)
    row = dict.fromkeys(target.schema.names) | {"event_id": bucket, "bucket": bucket, "shard": 0, "batch": 1}
    return write(target, pa.Table.from_pylist([row], schema=target.schema))


def land(small: SmallTables, bucket: str, number: int) -> str:
    added = files(small, bucket)
    assert small.add("foreign", added, Txn("land", number))
    return added[0].path


def age(small: SmallTables, seconds: float, *names: str) -> None:
    """Make files (all that there are, where none is named) as old as if so much time had passed since."""
    root = Path(small.path("foreign"))
    for path in [root / name for name in names] or [path for path in root.rglob("*") if path.is_file()]:
        found = path.stat()
        os.utime(path, (found.st_atime - seconds, found.st_mtime - seconds))


def there(small: SmallTables, *names: str) -> list[bool]:
    return [Path(small.path("foreign"), name).exists() for name in names]


def day_old(**more: object) -> Needed:
    return Needed(**{"since": time.time() - DAY} | more)  # type: ignore[arg-type]


def test_what_was_removed_stays_for_a_day_and_goes_then(small: SmallTables) -> None:
    old, new = land(small, "a", 1), land(small, "b", 2)
    age(small, 9 * DAY)  # files are old long before a rewriting, or GC, removes them
    drop_buckets(small, "foreign", "b")
    assert vacuum(small, "foreign", day_old()) == []
    age(small, DAY + HOUR)
    assert vacuum(small, "foreign", day_old(), dry_run=True) == [old]
    assert there(small, old, new) == [True, True]
    assert vacuum(small, "foreign", day_old()) == [old]
    assert there(small, old, new) == [False, True]
    assert len(small.read("foreign")) == 1


@pytest.mark.parametrize("off", [-3 * DAY, 3 * DAY])
def test_the_time_that_a_remover_wrote_counts_for_nothing(small: SmallTables, off: float) -> None:
    """Its clock was three days behind, or ahead: a file that it removed stays for a day all the same, and goes then."""
    old, _ = land(small, "a", 1), land(small, "b", 2)
    age(small, 9 * DAY)
    drop_buckets(small, "foreign", "b")
    log = Path(small.path("foreign"), "_delta_log", f"{small.version('foreign'):020}.json")
    text, now = log.read_text(), time.time()
    stamp = text.partition('"deletionTimestamp":')[2][:13]
    log.write_text(text.replace(stamp, str(int((now + off) * 1000))))
    assert vacuum(SmallTables(str(log.parents[2])), "foreign", day_old()) == []
    age(small, DAY + HOUR)
    assert vacuum(SmallTables(str(log.parents[2])), "foreign", day_old()) == [old]


def test_what_nobody_committed(small: SmallTables) -> None:
    land(small, "a", 1)
    fresh, paused, dead = (files(small, "b")[0].path for _ in range(3))
    age(small, 3 * DAY, paused)
    age(small, 4 * DAY, dead)
    plan = time.time() - 3 * DAY - HOUR  # a batch is under way since then
    assert vacuum(small, "foreign", day_old(written=plan)) == [dead]
    assert there(small, fresh, paused, dead) == [True, True, False]
    assert vacuum(small, "foreign", day_old()) == [paused]
    assert there(small, fresh) == [True]


def test_a_version_that_a_plan_names_stays_readable(small: SmallTables) -> None:
    old, _ = land(small, "a", 1), land(small, "b", 2)
    named = small.version("foreign")
    drop_buckets(small, "foreign", "b")
    small.open("foreign").create_checkpoint()
    land(small, "c", 3)
    age(small, 9 * DAY)
    land(small, "d", 4)
    needed = day_old(versions=(named,))
    assert vacuum(small, "foreign", needed) == []
    clean_log(small, "foreign", time.time(), needed)
    assert is_whole(small, "foreign", named)
    assert DeltaTable(small.path("foreign"), version=named).to_pyarrow_table().num_rows == 2
    assert vacuum(small, "foreign", day_old()) == [old]
    assert not is_whole(small, "foreign", named)
    assert is_whole(small, "foreign", small.version("foreign"))


def test_what_is_not_the_tables_data_is_left_alone(small: SmallTables) -> None:
    root = Path(small.path("foreign"))
    others = ["notes.txt", "_change_data/x.parquet", "bucket=a/.x.parquet.crc", "_delta_log/x.parquet"]
    for name in others:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")
    land(small, "a", 1)
    age(small, 9 * DAY)
    assert vacuum(small, "foreign", day_old()) == []
    assert there(small, *others) == [True] * 4


def versions(small: SmallTables) -> list[int]:
    log = Path(small.path("foreign"), "_delta_log")
    return sorted(int(path.stem) for path in log.glob("*.json") if path.stem.isdigit())


def test_the_log_of_the_last_days_can_be_read(small: SmallTables) -> None:
    for number in range(4):
        land(small, "a", number)
    small.open("foreign").create_checkpoint()  # version 4
    for number in range(4, 7):
        land(small, "a", number)
    age(small, 4 * DAY)
    land(small, "a", 7)  # version 8
    assert clean_log(small, "foreign", time.time(), day_old()) > 0
    # Version 7 was the newest three days ago; it is read from the checkpoint before it.
    assert versions(small) == [4, 5, 6, 7, 8]
    assert [is_whole(small, "foreign", version) for version in (3, 4, 7, 8)] == [False, True, True, True]
    age(small, 4 * DAY)
    assert clean_log(small, "foreign", time.time(), day_old()) > 0
    assert versions(small) == [8]
    assert len(SmallTables(str(Path(small.path("foreign")).parent)).read("foreign")) == 8


def test_a_log_with_one_young_file_in_the_middle_keeps_no_gap(small: SmallTables) -> None:
    """Written by a host whose clock was ahead."""
    for number in range(6):
        land(small, "a", number)
        small.open("foreign").create_checkpoint()
    age(small, 9 * DAY)
    os.utime(Path(small.path("foreign"), "_delta_log", f"{3:020}.json"))
    clean_log(small, "foreign", time.time(), day_old())
    assert versions(small) == [2, 3, 4, 5, 6]  # 2 was the newest before the first young one
    assert all(is_whole(small, "foreign", version) for version in versions(small))


def test_no_other_process_cleans_a_log(small: SmallTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """delta-rs and Spark both clean up with each checkpoint that they write, by their own clocks."""
    land(small, "a", 0)
    age(small, 30 * DAY)
    for number in range(1, 60):  # a checkpoint comes every 50 versions
        land(small, "a", number)
    assert list(Path(small.path("foreign"), "_delta_log").glob("*.checkpoint.parquet"))
    assert versions(small)[0] == 0
