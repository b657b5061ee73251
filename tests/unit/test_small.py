"""Small tables: written and read without Spark, each transaction once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest

from clickjoin.errors import FilesGone, LakeError
from clickjoin.lake import SmallTables, Txn
from clickjoin.lake.types import arrow_schema, delta_type
from clickjoin.lake.written import Target, Written, write
from clickjoin.tables import BOUNDARY, METRICS, PENDING

NOW = datetime(2026, 1, 1, 12, 0, 0, 123456, UTC)


@pytest.fixture
def small(tmp_path: Path) -> SmallTables:
    tables = SmallTables(str(tmp_path))
    tables.create(BOUNDARY)
    return tables


def entry(shards: int) -> dict[str, object]:
    return {"shard": shards, "boundary": NOW, "at": NOW}


def shards(small: SmallTables) -> list[int]:
    return sorted(small.read("boundary")["shard"].to_pylist())


def test_created_once(small: SmallTables) -> None:
    assert small.exists("boundary")
    assert not small.create(BOUNDARY)
    assert not small.exists("metrics")
    assert SmallTables(small.path("..")).exists("boundary") is False


def test_one_of_many_creates(tmp_path: Path) -> None:
    """A second creation must not be committed on top of the first: it would replace its schema."""
    copies, rounds = 4, 15
    barrier = Barrier(copies, timeout=30)

    def work(_: int) -> list[bool]:
        made = []
        for at in range(rounds):
            mine = SmallTables(f"{tmp_path}/{at}")
            barrier.wait()
            made.append(mine.create(METRICS))
        return made

    with ThreadPoolExecutor(copies) as pool:
        made = list(pool.map(work, range(copies)))
    assert [sum(won) for won in zip(*made, strict=True)] == [1] * rounds
    assert {SmallTables(f"{tmp_path}/{at}").version("metrics") for at in range(rounds)} == {0}


def test_append_and_read(small: SmallTables) -> None:
    assert (small.version("boundary"), small.rows("boundary"), shards(small)) == (0, 0, [])
    assert small.append("boundary", [entry(1), entry(2)])
    assert small.append("boundary", [])
    assert (small.version("boundary"), small.rows("boundary"), shards(small)) == (2, 2, [1, 2])
    assert small.read("boundary").to_pylist()[0] == entry(1)
    assert small.read("boundary", filters=[("shard", "=", 2)], columns=["shard"]).to_pylist() == [{"shard": 2}]


def test_a_txn_is_taken_once(small: SmallTables) -> None:
    assert small.settled_txn("boundary", "app") == -1
    assert small.append("boundary", [entry(1)], Txn("app", 3))
    for version in (3, 2):
        assert not small.append("boundary", [entry(2)], Txn("app", version))
        assert not small.fix("boundary", Txn("app", version))
    assert small.append("boundary", [entry(4)], Txn("other", 1))
    assert small.append("boundary", [entry(5)], Txn("app", 4))
    assert (shards(small), small.settled_txn("boundary", "app"), small.settled_txn("boundary", "other")) == (
        [1, 4, 5],
        4,
        1,
    )


def test_fix_commits_no_rows(small: SmallTables) -> None:
    before = small.version("boundary")
    assert small.fix("boundary", Txn("app", 7))
    assert not small.fix("boundary", Txn("app", 7))
    assert not small.append("boundary", [entry(1)], Txn("app", 7))
    assert (small.version("boundary"), shards(small)) == (before + 1, [])
    assert SmallTables(small.path("")[:-1]).settled_txn("boundary", "app") == 7


def test_one_of_many_wins(small: SmallTables) -> None:
    copies = 4
    barrier = Barrier(copies, timeout=30)

    def work(number: int) -> list[bool]:
        mine = SmallTables(small.path("")[:-1])
        won = []
        for version in range(5):
            barrier.wait()
            take = mine.fix("boundary", Txn("app", version)) if number == 0 else None
            won.append(mine.append("boundary", [entry(number)], Txn("app", version)) if take is None else take)
        return won

    with ThreadPoolExecutor(copies) as pool:
        wins = list(pool.map(work, range(copies)))
    assert [sum(won) for won in zip(*wins, strict=True)] == [1] * 5
    assert len(shards(small)) == 5 - sum(wins[0])


def test_writers_of_other_txns_all_get_through(small: SmallTables) -> None:
    copies, each = 4, 5

    def work(number: int) -> bool:
        mine = SmallTables(small.path("")[:-1])
        return all(mine.append("boundary", [entry(number)], Txn(f"app{number}", v)) for v in range(each))

    with ThreadPoolExecutor(copies) as pool:
        assert all(pool.map(work, range(copies)))
    assert shards(small) == sorted(list(range(copies)) * each)


def test_no_such_table(small: SmallTables) -> None:
    for call in (small.open, small.version, small.read, small.rows):
        with pytest.raises(
            LakeError, match=r"/metrics: no such table. Check that the lake is mounted, else run `clickjoin init`"
        ):
            call("metrics")


def test_partitions_and_files(small: SmallTables) -> None:
    small.create(METRICS)
    for replica in ("main", "east"):
        small.append("metrics", [{"replica": replica, "sequence": "join", "batch": n} for n in (1, 2)])
    files = small.files("metrics")
    assert sorted(files["partition.replica"].to_pylist()) == ["east", "main"]
    assert (files["min.batch"].to_pylist(), files["max.batch"].to_pylist()) == ([1, 1], [2, 2])
    assert small.rows("metrics") == 4
    assert len(small.read("metrics", filters=[("replica", "=", "east"), ("batch", ">=", 2)])) == 1


def test_columns(small: SmallTables) -> None:
    small.create(PENDING)
    columns = small.columns("pending")
    assert (columns["event_id"], columns["shard"], columns["batch"], columns["due_at"]) == (
        "string",
        "integer",
        "long",
        "timestamp",
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [("STRING", "string"), (" int ", "integer"), ("Decimal(10, 2)", "decimal(10,2)"), ("DATE", "date")],
)
def test_types(kind: str, name: str) -> None:
    assert delta_type(kind) == name


@pytest.mark.parametrize("kind", ["", "VARCHAR(3)", "ARRAY<INT>", "STRUCT<a: INT>", "DECIMAL", "strin"])
def test_no_types(kind: str) -> None:
    with pytest.raises(LakeError, match=r"is not supported for a column\. Use one of"):
        delta_type(kind)


def written(small: SmallTables) -> list[Written]:
    """A file with one entry, beside the table's own."""
    target = Target(small.path("boundary"), arrow_schema(BOUNDARY))
    return write(target, pa.Table.from_pylist([entry(7)], schema=arrow_schema(BOUNDARY)))


def test_files_are_added_once(small: SmallTables) -> None:
    assert small.add("boundary", written(small), Txn("a", 1))
    assert not small.add("boundary", written(small), Txn("a", 1))
    assert shards(small) == [7]


def test_files_that_are_gone_are_not_added(small: SmallTables) -> None:
    """A collector whose clock was wrong, or a VACUUM by hand, came between writing and committing."""
    files = written(small) + written(small)
    Path(small.path("boundary"), files[1].path).unlink()
    with pytest.raises(FilesGone, match=rf"boundary/: 1 of 2 files .* gone: {files[1].path}; .*is run again"):
        small.add("boundary", files, Txn("a", 1))
    assert (shards(small), small.settled_txn("boundary", "a")) == ([], -1)
    assert small.add("boundary", written(small), Txn("a", 1))
    assert shards(small) == [7]


def test_files_that_were_cut_short_are_not_added(small: SmallTables) -> None:
    file = written(small)[0]
    Path(small.path("boundary"), file.path).write_bytes(b"PAR1")
    with pytest.raises(FilesGone, match=rf"{file.path} \(4 bytes, not {file.size}\)"):
        small.add("boundary", [file], Txn("a", 1))
    assert shards(small) == []
