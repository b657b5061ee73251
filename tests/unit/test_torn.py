"""A table whose log or files a disk has damaged is one again that both engines read, without what was lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError

from clickjoin.lake import SmallTables, Txn
from clickjoin.lake.history import transactions
from clickjoin.lake.logs import read_log
from clickjoin.lake.parts import bad_files, take_out
from clickjoin.lake.torn import fill
from clickjoin.tables import BOUNDARY
from tests.unit.test_agreement import NOW

LAST = 60


@pytest.fixture
def small(tmp_path: Path) -> SmallTables:
    made = SmallTables(str(tmp_path))
    made.create(BOUNDARY)
    for number in range(1, LAST + 1):
        add(made, number)
    return made


def add(small: SmallTables, number: int) -> None:
    small.append("boundary", [{"shard": number, "boundary": NOW, "at": NOW}], Txn("app", number))


def entry(small: SmallTables, version: int, kind: str = "json") -> Path:
    return Path(small.path("boundary")) / "_delta_log" / f"{version:020}.{kind}"


def shards(small: SmallTables) -> list[int]:
    return sorted(small.read("boundary")["shard"].to_pylist())


@pytest.mark.parametrize("how", ["empty", "gone", "cut"])
@pytest.mark.parametrize("version", [LAST, LAST - 3])
def test_a_torn_entry_becomes_one_that_commits_nothing(small: SmallTables, how: str, version: int) -> None:
    file = entry(small, version)
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-40] if how == "cut" else b"")
    torn = fill(small, "boundary")
    if how == "gone" and version == LAST:
        assert torn == ()  # that an entry after the last one is gone, nobody can see
        return
    assert [one.version for one in torn] == [version]
    again = SmallTables(small.path("")[:-1])
    assert read_log(again.path("boundary")).torn == ()
    assert again.version("boundary") == LAST
    assert shards(again) == [number for number in range(1, LAST + 1) if number != version]
    add(again, LAST + 1)
    assert again.version("boundary") == LAST + 1
    assert (Path(again.path("boundary")) / "_torn" / file.name).exists() == (how != "gone")


def test_a_damaged_checkpoint_is_put_aside(small: SmallTables) -> None:
    entry(small, 49, "checkpoint.parquet").write_bytes(b"PAR1")
    assert [one.checkpoint for one in fill(small, "boundary")] == [True]
    assert shards(SmallTables(small.path("")[:-1])) == list(range(1, LAST + 1))


def test_a_pointer_to_a_checkpoint_that_is_not_there(small: SmallTables) -> None:
    """Engines look for that checkpoint alone, and end with an error of their own."""
    pointer = entry(small, 49).with_name("_last_checkpoint")
    pointer.write_text('{"version":55,"size":3}')
    with pytest.raises(DeltaError):
        SmallTables(small.path("")[:-1]).version("boundary")
    torn = read_log(small.path("boundary")).torn
    assert [(one.file, one.why) for one in torn] == [
        ("_last_checkpoint", "names checkpoint 55, which is not there"),
    ]
    assert fill(small, "boundary") == torn
    assert not pointer.exists()
    assert (Path(small.path("boundary")) / "_torn/_last_checkpoint").exists()
    assert shards(SmallTables(small.path("")[:-1])) == list(range(1, LAST + 1))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version":"x"}', "{}"])
def test_a_pointer_that_says_nothing_is_no_matter(small: SmallTables, text: str) -> None:
    entry(small, 49).with_name("_last_checkpoint").write_text(text)
    assert read_log(small.path("boundary")).torn == ()
    assert shards(SmallTables(small.path("")[:-1])) == list(range(1, LAST + 1))


def test_one_that_nothing_reaches_back_behind_is_left(small: SmallTables) -> None:
    """An entry that commits nothing in the place of one that is gone would take its files out of the table."""
    entry(small, 49, "checkpoint.parquet").write_bytes(b"PAR1")
    entry(small, 20).unlink()
    assert fill(small, "boundary") == ()
    assert entry(small, 49, "checkpoint.parquet").exists()


@pytest.mark.parametrize("how", ["gone", "cut", "zeros", "pages"])
def test_files_that_cannot_be_read(small: SmallTables, how: str) -> None:
    assert bad_files(small, "boundary") == []
    path = Path(small.path("boundary")) / str(small.files("boundary")["path"][0])
    data = path.read_bytes()
    spoiled = {"cut": data[:-9], "zeros": b"\0" * len(data), "pages": b"PAR1" + b"\xff" * 300 + data[304:]}
    path.unlink() if how == "gone" else path.write_bytes(spoiled[how])
    bad = bad_files(small, "boundary", whole=how == "pages")
    assert [(one.path, one.kind, one.rows) for one in bad] == [
        (path.name, "missing_file" if how == "gone" else "damaged_file", 1)
    ]
    assert take_out(small, "boundary", bad) == [path.name]
    assert len(shards(SmallTables(small.path("")[:-1]))) == LAST - 1
    assert bad_files(small, "boundary") == []


def test_transactions_by_version(small: SmallTables) -> None:
    assert transactions(small.path("boundary"), NOW) == {("app", number): number for number in range(1, LAST + 1)}
