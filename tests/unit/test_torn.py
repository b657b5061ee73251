"""A table whose log or files a disk has damaged is one again that both engines read, without what was lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake.history import transactions
from clickjoin.lake.log_entries import read_log
from clickjoin.lake.log_repair import fill
from clickjoin.lake.lost_files import bad_files, take_out
from clickjoin.model.txn import Txn
from clickjoin.schemas import BOUNDARY
from tests.unit.test_agreement import NOW

LAST = 60


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    made = ArrowTables(str(tmp_path))
    made.create(BOUNDARY)
    for number in range(1, LAST + 1):
        add(made, number)
    return made


def add(delta: ArrowTables, number: int) -> None:
    delta.append("registry_boundary", [{"shard": number, "registry_boundary": NOW, "at": NOW}], Txn("app", number))


def entry(delta: ArrowTables, version: int, kind: str = "json") -> Path:
    return Path(delta.path("registry_boundary")) / "_delta_log" / f"{version:020}.{kind}"


def shards(delta: ArrowTables) -> list[int]:
    return sorted(delta.read("registry_boundary")["shard"].to_pylist())


def test_a_checksum_outlives_its_commit(delta: ArrowTables) -> None:
    """Spark writes one beside each commit: a log whose newest entry a disk has lost is read without that entry."""
    newest = entry(delta, LAST)
    newest.unlink()
    checksum, older = entry(delta, LAST, "crc"), entry(delta, LAST - 1, "crc")
    for file in (checksum, older):
        file.write_text('{"tableSizeBytes":1,"numFiles":1,"numMetadata":1,"numProtocol":1}')
    again = ArrowTables(delta.path("")[:-1])
    assert again.version("registry_boundary") == LAST - 1
    assert shards(again) == list(range(1, LAST))
    assert older.exists()
    assert not checksum.exists()
    add(again, LAST)
    assert shards(again) == list(range(1, LAST + 1))


@pytest.mark.parametrize("how", ["empty", "gone", "cut"])
@pytest.mark.parametrize("version", [LAST, LAST - 3])
def test_a_torn_entry_becomes_one_that_commits_nothing(delta: ArrowTables, how: str, version: int) -> None:
    file = entry(delta, version)
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-40] if how == "cut" else b"")
    torn = fill(delta, "registry_boundary")
    if how == "gone" and version == LAST:
        assert torn == ()  # that an entry after the last one is gone, nobody can see
        return
    assert [one.version for one in torn] == [version]
    again = ArrowTables(delta.path("")[:-1])
    assert read_log(again.path("registry_boundary")).torn == ()
    assert again.version("registry_boundary") == LAST
    assert shards(again) == [number for number in range(1, LAST + 1) if number != version]
    add(again, LAST + 1)
    assert again.version("registry_boundary") == LAST + 1
    assert (Path(again.path("registry_boundary")) / "_torn" / file.name).exists() == (how != "gone")


def test_a_damaged_checkpoint_is_put_aside(delta: ArrowTables) -> None:
    entry(delta, 49, "checkpoint.parquet").write_bytes(b"PAR1")
    assert [one.checkpoint for one in fill(delta, "registry_boundary")] == [True]
    assert shards(ArrowTables(delta.path("")[:-1])) == list(range(1, LAST + 1))


def test_a_pointer_to_a_checkpoint_that_is_not_there(delta: ArrowTables) -> None:
    """Engines look for that checkpoint alone, and end with an error of their own."""
    pointer = entry(delta, 49).with_name("_last_checkpoint")
    pointer.write_text('{"version":55,"size":3}')
    with pytest.raises(DeltaError):
        ArrowTables(delta.path("")[:-1]).version("registry_boundary")
    torn = read_log(delta.path("registry_boundary")).torn
    assert [(one.file, one.why) for one in torn] == [
        ("_last_checkpoint", "names checkpoint 55, which is not there"),
    ]
    assert fill(delta, "registry_boundary") == torn
    assert not pointer.exists()
    assert (Path(delta.path("registry_boundary")) / "_torn/_last_checkpoint").exists()
    assert shards(ArrowTables(delta.path("")[:-1])) == list(range(1, LAST + 1))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version":"x"}', "{}"])
def test_a_pointer_that_says_nothing_is_no_matter(delta: ArrowTables, text: str) -> None:
    entry(delta, 49).with_name("_last_checkpoint").write_text(text)
    assert read_log(delta.path("registry_boundary")).torn == ()
    assert shards(ArrowTables(delta.path("")[:-1])) == list(range(1, LAST + 1))


def test_entries_that_were_removed_up_to_a_checkpoint(delta: ArrowTables) -> None:
    """Nothing is lost, and delta-rs commits nothing to such a table: an empty entry takes the newest one's place."""
    DeltaTable(delta.path("registry_boundary")).create_checkpoint()
    for version in range(LAST + 1):
        entry(delta, version).unlink(missing_ok=True)
    assert [one.file for one in fill(delta, "registry_boundary")] == [entry(delta, LAST).name]
    again = ArrowTables(delta.path("")[:-1])
    add(again, LAST + 1)
    assert shards(again) == list(range(1, LAST + 2))


def test_one_that_nothing_reaches_back_behind_is_left(delta: ArrowTables) -> None:
    """An entry that commits nothing in the place of one that is gone would take its files out of the table."""
    entry(delta, 49, "checkpoint.parquet").write_bytes(b"PAR1")
    entry(delta, 30).unlink()
    assert fill(delta, "registry_boundary") == ()
    assert entry(delta, 49, "checkpoint.parquet").exists()


@pytest.mark.parametrize("how", ["gone", "cut", "zeros", "pages"])
def test_files_that_cannot_be_read(delta: ArrowTables, how: str) -> None:
    assert bad_files(delta, "registry_boundary") == []
    path = Path(delta.path("registry_boundary")) / str(delta.files("registry_boundary")["path"][0])
    data = path.read_bytes()
    spoiled = {"cut": data[:-9], "zeros": b"\0" * len(data), "pages": b"PAR1" + b"\xff" * 300 + data[304:]}
    path.unlink() if how == "gone" else path.write_bytes(spoiled[how])
    bad = bad_files(delta, "registry_boundary", whole=how == "pages")
    assert [(one.path, one.kind, one.rows) for one in bad] == [
        (path.name, "missing_file" if how == "gone" else "damaged_file", 1)
    ]
    assert take_out(delta, "registry_boundary", bad) == [path.name]
    assert len(shards(ArrowTables(delta.path("")[:-1]))) == LAST - 1
    assert bad_files(delta, "registry_boundary") == []


def test_transactions_by_version(delta: ArrowTables) -> None:
    assert transactions(delta.path("registry_boundary"), NOW) == {
        ("app", number): number for number in range(1, LAST + 1)
    }
